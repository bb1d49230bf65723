"""VSRN: vectors, scores, recalls and caption losses are those of its authors' code, on files as they wrote them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from lossscope.core.similarity import pair_mask
from lossscope.encoders.layers.captioning import Captioning
from lossscope.encoders.vsrn import VSRN
from tests.authors.answers import TOLERANCE, difference, recalls, similarities
from tests.authors.rule import features_by_rule, weights_by_rule
from tests.authors.vse_answers import VseAnswers, feature_cases, order_similarities

ANSWERS = VseAnswers("vsrn")
OUR_NAMES = {
    "encoder.vid2hid.": "project.", "encoder.rnn.": "encoder.", "decoder.embedding.": "embed.",
    "decoder.attention.linear1.": "attend.", "decoder.attention.linear2.": "weigh.", "decoder.rnn.": "decoder.",
    "decoder.out.": "out.",
}  # fmt: skip


@pytest.mark.parametrize("name", feature_cases(ANSWERS))
def test_vectors_scores_and_recalls_are_those_of_the_authors(name: str, tmp_path: Path) -> None:
    embedded = ANSWERS.open(name, tmp_path, pickled=not name.startswith("ecir"))
    images, captions = ANSWERS.array(f"{name}/images"), ANSWERS.array(f"{name}/captions")
    if "order" in name:
        assert difference(similarities(embedded), order_similarities(images, captions)) <= TOLERANCE
    else:
        assert difference(embedded.images, images) <= TOLERANCE
        assert difference(embedded.captions, captions) <= TOLERANCE
    known = ANSWERS.content["cases"][name]
    for folds, metrics in ((1, "metrics"), (5, "fold_metrics")):
        ours = recalls([embedded], folds)
        for direction, values in known[metrics].items():
            assert ours[direction] == pytest.approx(values), (metrics, direction)


def test_recalls_of_an_ensemble_are_those_of_the_authors(tmp_path: Path) -> None:
    embedded = [ANSWERS.open(name, tmp_path / name, pickled=True) for name in ("f30k", "f30k_layers")]
    ours = recalls(embedded)
    for direction, values in ANSWERS.content["ensemble"].items():
        assert ours[direction] == pytest.approx(values), direction


@pytest.mark.parametrize("known", ANSWERS.content["losses"], ids=lambda known: f"longest={known['longest']}")
def test_the_caption_loss_and_its_gradient_are_those_of_the_authors(known: Mapping[str, Any]) -> None:
    branch = Captioning(8, len(ANSWERS.content["words"]), 5, known["longest"]).eval()
    weights = weights_by_rule(known["shapes"], scale=0.05)
    branch.load_state_dict({our_name(name): tensor for name, tensor in weights.items()})
    graph = torch.from_numpy(features_by_rule((len(known["ids"]), 5, 8), 7)).requires_grad_()
    loss = branch(graph, torch.tensor(known["ids"]), torch.tensor(known["lengths"]))
    loss.backward()
    assert float(loss.detach()) == pytest.approx(known["loss"], rel=1e-6)
    assert difference(graph.grad, ANSWERS.array(f"caption_{known['longest']}/gradient")) <= 1e-7
    parameters = dict(branch.named_parameters())
    assert len(parameters) == len(known["norms"])
    for name, norm in known["norms"].items():
        gradient = parameters[our_name(name)].grad
        assert gradient is not None
        assert float(gradient.norm()) == pytest.approx(norm, rel=1e-4), name


def test_the_caption_loss_of_a_training_batch_asks_the_same_of_the_image_tower() -> None:
    known, branch_shapes = ANSWERS.content["training"], ANSWERS.content["losses"][0]["shapes"]
    spec = VSRN(dim=8, words=5, region_norm_axis="regions", captions=True)
    encoder = spec.build((36, 6), len(ANSWERS.content["words"]))
    shapes = {name: tuple(tensor.shape) for name, tensor in encoder.image.state_dict().items()}  # type: ignore[union-attr]
    encoder.image.load_state_dict(weights_by_rule(shapes))  # type: ignore[union-attr]
    branch = weights_by_rule(branch_shapes, scale=0.05)
    encoder.captioning.load_state_dict({our_name(k): v for k, v in branch.items()})  # type: ignore[union-attr]
    encoder.train().captioning.eval()  # type: ignore[union-attr, operator]
    rows = torch.tensor(known["numbers"]) // 5
    ids, lengths = (torch.tensor(ANSWERS.content["losses"][0][name]) for name in ("ids", "lengths"))
    images = encoder.encode_images(torch.from_numpy(features_by_rule((4, 36, 6)))[rows])
    texts = encoder.encode_texts(ids, lengths)
    S = encoder.score(images, texts)
    assert isinstance(S, torch.Tensor)
    loss = encoder.extra_loss(images, texts, S, pair_mask(torch.arange(len(rows))), ids, lengths)
    assert loss is not None
    loss.backward()
    assert float(loss.detach()) == pytest.approx(known["loss"], rel=1e-6)
    gradients = {k: p.grad for k, p in encoder.image.named_parameters() if p.grad is not None}  # type: ignore[union-attr]
    assert gradients.keys() == known["norms"].keys()
    for name, norm in known["norms"].items():
        assert float(gradients[name].norm()) == pytest.approx(norm, rel=1e-3, abs=1e-6), name


def our_name(name: str) -> str:
    """Return our name of a parameter of the caption branch."""
    start = next(start for start in OUR_NAMES if name.startswith(start))
    name = OUR_NAMES[start] + name.removeprefix(start)
    return name.replace("_l0", "") if name.startswith("decoder.") else name
