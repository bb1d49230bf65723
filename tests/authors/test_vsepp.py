"""VSE++: vectors, scores and recalls are those of its authors' code, on files as the authors wrote them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import lossscope
from lossscope.sources.checkpoints.conversion import open_released
from tests.authors.answers import TOLERANCE, difference, recalls, similarities
from tests.authors.rule import network_by_rule, weights_by_rule, write_pictures
from tests.authors.vse_answers import VseAnswers, feature_cases, order_similarities
from tests.authors.vse_files import Case, write_checkpoint, write_vocabulary

ANSWERS = VseAnswers("vsepp")
SLOW = ("resnet152", "vgg19")  # seconds each
TEXT_SHAPES = {
    "embed.weight": (len(ANSWERS.content["words"]), 5), "rnn.weight_ih_l0": (24, 5), "rnn.weight_hh_l0": (24, 8),
    "rnn.bias_ih_l0": (24,), "rnn.bias_hh_l0": (24,),
}  # fmt: skip


@pytest.mark.parametrize("name", feature_cases(ANSWERS))
def test_vectors_scores_and_recalls_of_features_are_those_of_the_authors(name: str, tmp_path: Path) -> None:
    embedded = ANSWERS.open(name, tmp_path, pickled=name.endswith("_master"))
    images, captions = ANSWERS.array(f"{name}/images"), ANSWERS.array(f"{name}/captions")
    if "order" in name:
        assert difference(similarities(embedded), order_similarities(images, captions)) <= TOLERANCE
    else:
        assert difference(embedded.images, images) <= TOLERANCE
        assert difference(embedded.captions, captions) <= TOLERANCE
        assert difference(similarities(embedded), images @ captions.T) <= TOLERANCE
    known = ANSWERS.content["cases"][name]
    for folds, metrics in ((1, "metrics"), (5, "fold_metrics")):
        ours = recalls([embedded], folds)
        for direction, values in known[metrics].items():
            assert ours[direction] == pytest.approx(values), (metrics, direction)


@pytest.mark.usefixtures("punkt")
def test_vectors_of_captions_of_several_sentences_are_those_of_the_authors(tmp_path: Path) -> None:
    path, _ = ANSWERS.write("sentences", tmp_path)
    checkpoint, _ = open_released(path)
    model = checkpoint.model().eval()
    words = checkpoint.words()
    rows = [words.encode(caption) for caption in ANSWERS.content["sentences"]]
    with torch.no_grad():
        vectors = [model.encode_texts(torch.tensor([row]), torch.tensor([len(row)])).vectors[0] for row in rows]
    assert difference(torch.stack(vectors), ANSWERS.array("sentences/captions")) <= TOLERANCE


@pytest.mark.parametrize("network", ["resnet50", *SLOW])
def test_vectors_of_pictures_that_are_not_square_are_those_of_the_authors(network: str, tmp_path: Path) -> None:
    write_vocabulary(tmp_path / "f30k_vocab.pkl", ANSWERS.content["words"])
    path, data = write_network(network, tmp_path), write_flickr(tmp_path / "f30k")
    embedded = lossscope.load(path, data=f"karpathy:root={data},name=flickr30k", split="test", cache=False)
    assert difference(embedded.images, ANSWERS.array(f"{network}/images")) <= TOLERANCE


def write_network(network: str, folder: Path) -> Path:
    """Write a checkpoint with a network of pictures as the authors did, with `module.` where DataParallel puts it."""
    from lossscope.encoders.vsepp import VSEPP

    with torch.device("meta"):
        tower = VSEPP(image=network, dim=8, crop=224).rebuild((3, 256, 256), 4, {}).image  # type: ignore[arg-type]
    infix = ("cnn.features.", "cnn.features.module.") if network == "vgg19" else ("cnn.", "cnn.module.")
    shapes = {name.replace(*infix): tuple(tensor.shape) for name, tensor in tower.state_dict().items()}  # type: ignore[union-attr]
    network_shapes = {name: shape for name, shape in shapes.items() if name.startswith("cnn.")}
    joint = {name: shape for name, shape in shapes.items() if name.startswith("fc.")}
    image = {**network_by_rule(network_shapes), **weights_by_rule(joint)}
    case = Case(ANSWERS.content["cases"][network]["options"], ())
    return write_checkpoint(folder / "model_best.pth.tar", case, [image, weights_by_rule(TEXT_SHAPES)])


def write_flickr(folder: Path) -> Path:
    """Write pictures with five captions each as Karpathy's file lists them."""
    (folder / "images").mkdir(parents=True)
    files = write_pictures(folder / "images", [(width, height) for width, height in ANSWERS.content["pictures"]])
    captions = iter(ANSWERS.content["captions"])
    images = [
        {"split": "test", "filename": file.name, "sentences": [{"raw": next(captions)} for _ in range(5)]}
        for file in files
    ]
    (folder / "dataset_flickr30k.json").write_text(json.dumps({"images": images}), encoding="utf-8")
    return folder
