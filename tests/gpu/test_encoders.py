"""Does every encoder give the scores of the CPU, and the gradients, on the device?"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from torch import Tensor

from lossscope.core.pair import Pair
from lossscope.core.weights import backward
from lossscope.encoders.base import Encoder
from lossscope.encoders.types import Items
from tests.encoders.examples import Example, captions, double_precision, examples, is_built_in, without_dropout

FIRST = {example.name: example for example in reversed(examples())}
EXAMPLES = {
    example.spec: example
    for example in examples()
    if is_built_in(example.name) and (example.files is None or example is FIRST[example.name])
}


def move(items: Items, device: torch.device) -> Items:
    return items.to(device) if isinstance(items, Tensor) else {name: x.to(device) for name, x in items.items()}


def scores(model: Encoder, items: Items, words: tuple[Tensor, Tensor], device: torch.device) -> list[Tensor]:
    images = model.encode_images(move(items, device))
    texts = model.encode_texts(words[0].to(device), words[1])
    S = model.score(images, texts)
    return [S.i2t, S.t2i.T] if isinstance(S, Pair) else [S]


def gradients(model: Encoder) -> Mapping[str, Tensor | None]:
    return {name: p.grad for name, p in model.named_parameters()}


@pytest.mark.parametrize("name", EXAMPLES)
def test_scores_and_gradients(name: str, device: torch.device, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    example: Example = EXAMPLES[name]
    spec = example.options(tmp_path / "files", example.quiet)
    with double_precision():
        model = without_dropout(example.build(spec)).double().train()
        there = copy.deepcopy(model).to(device)
        items, words = example.items(spec), captions(spec)
        expected = scores(model, items, words, torch.device("cpu"))
        ours = scores(there, items, words, device)
        for S, other in zip(ours, expected, strict=True):
            assert S.device.type == device.type
            torch.testing.assert_close(S.detach().cpu(), other.detach(), rtol=1e-7, atol=1e-9, equal_nan=True)
        if bool(torch.isnan(expected[0]).any()) or len(expected) > 1:
            return  # re-ranked: not trained by one matrix
        G = torch.randn(expected[0].shape, generator=torch.Generator().manual_seed(9), dtype=torch.float64)
        backward(expected[0], G)
        backward(ours[0], G.to(device))
    wanted = gradients(model)
    for parameter, gradient in gradients(there).items():
        other = wanted[parameter]
        assert (gradient is None) == (other is None), parameter
        if gradient is not None and other is not None:
            scale = float(other.abs().max().clamp(min=1e-3))
            assert float((gradient.cpu() - other).abs().max()) / scale < 1e-6, parameter
