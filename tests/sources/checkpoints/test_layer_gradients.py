"""Do layer gradients match a backward pass, and does the model stay unchanged?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lossscope.core.similarity import pair_mask
from lossscope.datasets.base import Split
from lossscope.encoders.base import Encoder, encoder_spec
from lossscope.encoders.types import on_device
from lossscope.registry import build
from lossscope.sources.checkpoints.captions import CaptionBatcher
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.sources.checkpoints.layer_gradients import LayerGradients, layer_name
from lossscope.text.vocabulary import Vocabulary
from tests.each import each

Models = tuple[Encoder, CaptionBatcher]
IMAGES, CAPTIONS = np.array([3, 0, 7, 5]), np.array([16, 2, 36, 27])


class InMemory:
    """Features in memory."""

    def __init__(self, arrays: Any) -> None:
        self.arrays, self.shape = arrays, arrays.shape[1:]

    def __len__(self) -> int:
        return len(self.arrays)

    def take(self, rows: Any) -> Any:
        return self.arrays[rows]


@pytest.fixture
def pictures(tiny_checkpoint: Path) -> Models:
    """Return a picture model with batch norm and a GRU, and captions."""
    checkpoint = Checkpoint.load(tiny_checkpoint)
    return checkpoint.model(), CaptionBatcher(build("datasets", checkpoint.data).split("val"), checkpoint.words())


def regions() -> Models:
    """Return a model that scores pairs of regions and words in chunks, and captions."""
    rng = np.random.default_rng(0)
    captions = [
        f"a {color} {shape}" for color in ("red", "blue", "green") for shape in "dog cat hat cup sun car".split()
    ]
    owner = np.arange(18, dtype=np.int64) % 9
    words = Vocabulary.build(captions, 1)
    features = rng.normal(size=(9, 4, 12)).astype(np.float32)
    ids = [str(n) for n in range(18)]
    torch.manual_seed(0)
    model = encoder_spec("scan:dim=8,words=8").build((4, 12), len(words)).eval()
    return model, CaptionBatcher(Split("test", InMemory(features), captions, owner, ids[:9], ids, "f"), words)


def expected(model: Encoder, captions: CaptionBatcher, rows: Any, direction: str) -> dict[str, float]:
    """Return layer -> norm after a backward pass of the summed NT-Xent loss, in eval mode."""
    device = torch.device("cpu")
    images = model.encode_images(on_device(captions.split.images.take(rows[0]), device))
    S = model.score(images, model.encode_texts(*captions.take(rows[1], device)))
    assert isinstance(S, torch.Tensor)
    S = S if direction == "i2t" else S.T
    build("objectives", "ntxent").values(S, pair_mask(torch.arange(len(S)))).sum().backward()
    squares: dict[str, float] = {}
    for name, parameter in model.named_parameters():
        square = 0.0 if parameter.grad is None else float(parameter.grad.double().square().sum())
        squares[layer_name(name)] = squares.get(layer_name(name), 0.0) + square
        parameter.grad = None
    return {name: square**0.5 for name, square in squares.items()}


def weights(model: Encoder, captions: CaptionBatcher, rows: Any, direction: str) -> torch.Tensor:
    with torch.no_grad():
        device = torch.device("cpu")
        images = model.encode_images(on_device(captions.split.images.take(rows[0]), device))
        S = model.score(images, model.encode_texts(*captions.take(rows[1], device)))
    assert isinstance(S, torch.Tensor)
    W: torch.Tensor = build("objectives", "ntxent")(S if direction == "i2t" else S.T, pair_mask(torch.arange(len(S)))).W
    return W


@each("of", ["pictures", "regions"], "rows", [(IMAGES, CAPTIONS % 18), (np.array([1, 1, 2]), np.array([0, 9, 4]))])
def test_norms_are_those_of_a_backward_pass(of: str, rows: Any, pictures: Models) -> None:
    model, captions = pictures if of == "pictures" else regions()
    both = LayerGradients(lambda: (model, captions))(*rows)
    for direction, gradients in (("i2t", both.i2t), ("t2i", both.t2i)):
        norms = gradients(weights(model, captions, rows, direction))
        expected_norms = expected(model, captions, rows, direction)
        assert {name: float(norm) for name, norm in norms.items()} == pytest.approx(expected_norms, rel=1e-4, abs=1e-6)
        assert sum(expected_norms.values()) > 0.1


def test_layers_are_named_after_their_towers(pictures: Models) -> None:
    norms = LayerGradients(lambda: pictures)(IMAGES, CAPTIONS).i2t(torch.eye(4))
    assert list(norms) == ["image.features", "image.fc", "image.bn", "text.embed", "text.rnn"]


@each("training", [False, True])
def test_the_model_stays_unchanged(training: bool, pictures: Models) -> None:
    model, captions = pictures
    model.train(training)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    LayerGradients(lambda: (model, captions))(IMAGES, CAPTIONS).t2i(torch.ones(4, 4))
    assert model.training == training
    assert all(parameter.grad is None for parameter in model.parameters())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


@each("of", ["pictures", "regions"])
def test_a_batch_goes_through_the_model_once(of: str, pictures: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    model, captions = pictures if of == "pictures" else regions()
    calls: list[int] = []
    encode: Callable[..., Any] = model.encode_images
    monkeypatch.setattr(model, "encode_images", lambda images: calls.append(1) or encode(images))
    layer_gradients = LayerGradients(lambda: (model, captions))
    both = layer_gradients(IMAGES, CAPTIONS % 18)
    assert calls == []
    first, again, other = both.i2t(torch.eye(4)), both.i2t(torch.eye(4)), both.t2i(2 * torch.eye(4))
    assert calls == [1]
    for name, norm in first.items():
        assert again[name] == norm
        assert other[name] == pytest.approx(2 * norm)


def test_norms_are_the_same_in_inference_mode(pictures: Models) -> None:
    layer_gradients = LayerGradients(lambda: pictures)
    with_gradients = layer_gradients(IMAGES, CAPTIONS).i2t(torch.eye(4))
    with torch.inference_mode():
        norms = layer_gradients(IMAGES, CAPTIONS).i2t(torch.eye(4))
    assert {name: float(norm) for name, norm in norms.items()} == {name: float(v) for name, v in with_gradients.items()}


def test_parameters_that_are_not_trained_have_no_layer(pictures: Models) -> None:
    model, captions = pictures
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(not name.startswith("image.features"))
    assert "image.features" not in LayerGradients(lambda: (model, captions))(IMAGES, CAPTIONS).i2t(torch.eye(4))


def test_the_model_is_loaded_when_it_is_needed(pictures: Models) -> None:
    loads: list[int] = []
    layer_gradients = LayerGradients(lambda: loads.append(1) or pictures)  # type: ignore[func-returns-value]
    both = layer_gradients(IMAGES, CAPTIONS)
    assert loads == []
    both.i2t(torch.eye(4))
    layer_gradients(IMAGES[:2], CAPTIONS[:2]).i2t(torch.eye(2))
    assert loads == [1]
