"""VSE-infinity: scores, recalls and losses are those of its authors' code, on files as the authors wrote them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import lossscope
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.similarity import pair_mask
from lossscope.core.weights import both, reduce_weights
from lossscope.datasets.conversion.vse_infinity import convert
from lossscope.encoders.vse_infty import VSEInfty
from tests.authors.answers import TOLERANCE, difference, recalls, similarities
from tests.authors.score_answers import require_recalls, require_scores
from tests.authors.score_files import InftyCase, write_grids
from tests.authors.vse_answers import VseAnswers
from tests.authors.vse_files import write_checkpoint, write_features, write_vocabulary

pytest.importorskip("transformers")

BACKBONES = {
    "detector": "detector",
    "imagenet": "resnet101_caffe",
    "imagenet_res50": "resnet50_caffe",
    "imagenet_res152": "resnet152_caffe",
    "imagenet_resnext": "resnext101",
    "wsl_resnext101": "resnext101",
}


class InftyAnswers(VseAnswers):
    """The known answers of VSE-infinity."""

    def case(self, name: str) -> InftyCase:
        known = self.content["cases"][name]
        return InftyCase(known["options"], tuple(known["features"]), known["shapes"], known["seed"])


ANSWERS = InftyAnswers("vse_infty")
FAST = "bigru/imagenet_res50"
SLOW = [name for name in ANSWERS.content["grids"] if name != FAST]  # seconds each


def write_tokens(branch: str, folder: Path) -> Path:
    """Write the words of the branch bigru, or the parts of words of BERT."""
    if branch == "bigru":
        return write_vocabulary(folder / "f30k_precomp_vocab.json", ANSWERS.content["words"])
    (folder / "vocab.txt").write_text("".join(f"{part}\n" for part in ANSWERS.content["parts"]), encoding="utf-8")
    return folder / "vocab.txt"


def open_regions(name: str, folder: Path) -> SplitEmbeddings:
    case = ANSWERS.case(name)
    write_features(folder / "precomp", case, ANSWERS.content["captions"])
    path = write_checkpoint(folder / "model_best.pth", case)
    tokens = write_tokens(name.partition("_")[0], folder)
    return lossscope.load(path, data=f"precomp:root={folder / 'precomp'}", split="test", vocabulary=tokens, cache=False)


@pytest.mark.parametrize("name", ANSWERS.content["cases"])
def test_scores_and_recalls_of_regions_are_those_of_the_authors(name: str, tmp_path: Path) -> None:
    require_scores(ANSWERS, name, open_regions(name, tmp_path))


@pytest.mark.parametrize("name", [FAST, *SLOW])
def test_scores_of_pictures_that_are_not_square_are_those_of_the_authors(name: str, tmp_path: Path) -> None:
    branch, source = name.split("/")
    known = ANSWERS.content["grids"][name]
    write_grids(tmp_path / "data", ANSWERS.content["pictures"], ANSWERS.content["captions"][:20])
    case = InftyCase(known["options"], (), grid_shapes(branch, BACKBONES[source]))
    path = write_checkpoint(tmp_path / "model_best.pth", case)
    data = f"grids:root={tmp_path / 'data'},folder=flickr30k-images,size=96,resample=cv2"
    tokens = write_tokens(branch, tmp_path)
    embedded = lossscope.load(path, data=data, split="test", vocabulary=tokens, cache=False)
    assert difference(similarities(embedded), ANSWERS.array(name)) <= TOLERANCE
    ours = recalls([embedded])
    for direction, values in known["metrics"].items():
        assert ours[direction] == pytest.approx(values)


def grid_shapes(branch: str, backbone: str) -> list[dict[str, tuple[int, ...]]]:
    """Return the shapes of the authors' tensors of a model of pictures, which has its network twice."""
    spec = VSEInfty(image="grid", text=branch, dim=8, words=5, bert="1x768", backbone=backbone)  # type: ignore[arg-type]
    size = len(ANSWERS.content["words"]) + 1 if branch == "bigru" else len(ANSWERS.content["parts"])
    with torch.device("meta"):
        state = spec.rebuild((3, 96, 96), size, {}).state_dict()
    ours = {name: tuple(tensor.shape) for name, tensor in state.items()}
    image = {k.removeprefix("image."): v for k, v in ours.items() if k.startswith("image.")}
    parts = {"conv1": "base.0", "bn1": "base.1", "layer1": "base.4", "layer2": "base.5", "layer3": "base.6"}
    for name, shape in list(image.items()):
        head, _, rest = name.removeprefix("backbone.resnet.").partition(".")
        if name.startswith("backbone."):
            image[f"backbone.{parts.get(head, 'top.0')}.{rest}"] = shape
    image |= {"backbone.resnet.fc.weight": (1000, 2048), "backbone.resnet.fc.bias": (1000,)}
    text = {k.removeprefix("text."): v for k, v in ours.items() if k.startswith("text.")}
    return [{f"module.{name}": shape for name, shape in tower.items()} for tower in (image, text)]


def test_saved_matrices_and_their_ensemble_have_the_recalls_of_the_authors(tmp_path: Path) -> None:
    sources = []
    for name in ("bigru", "bert"):
        sims = ANSWERS.array(f"saved_{name}")
        np.save(tmp_path / f"results_{name}.npy", {"npts": len(sims), "sims": sims}, allow_pickle=True)  # type: ignore[arg-type]
        assert convert(tmp_path / f"results_{name}.npy", tmp_path / f"{name}.npz") == sims.shape
        sources.append(lossscope.load(tmp_path / f"{name}.npz"))
        require_recalls(ANSWERS.content["cases"][name], sources[-1:])
    require_recalls(ANSWERS.content["ensemble"], sources)


@pytest.mark.parametrize(("epochs", "objective"), [("first", "triplet:margin=0.2"), ("later", "triplet_sh:margin=0.2")])
def test_the_loss_of_the_first_epochs_and_of_the_later_ones_is_that_of_the_authors(epochs: str, objective: str) -> None:
    S = torch.from_numpy(ANSWERS.array("loss/S"))
    batch = reduce_weights(both(lossscope.objective(objective), S, pair_mask(torch.arange(len(S)))), 1, "sum", len(S))
    assert batch.value is not None
    assert float(batch.value) == pytest.approx(float(ANSWERS.array(f"loss/{epochs}")))
    assert difference(batch.gradient, ANSWERS.array(f"loss/{epochs}_W")) == 0
