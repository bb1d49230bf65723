"""BFAN: do closed thresholds equal the paper's double sums, without NaN where no element is kept?"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import torch
from torch import Tensor

from lossscope.encoders.base import Encoder
from lossscope.encoders.layers.focal_attention import focus_attention
from lossscope.encoders.types import EncodedBatch
from lossscope.registry import build
from tests.each import each

Oracles = Callable[[str], ModuleType]
CAPTIONS = [[1, 5, 6, 2], [1], [1, 4, 5, 9, 7, 2], [1, 2], [1, 7, 2]]
LENGTHS = torch.tensor([len(caption) for caption in CAPTIONS])
both_focals = each("focal", ["equal", "prob"])


def pad(more: int = 0) -> Tensor:
    longest = max(map(len, CAPTIONS)) + more
    return torch.tensor([caption + [0] * (longest - len(caption)) for caption in CAPTIONS])


def model(spec: str = "") -> Encoder:
    torch.manual_seed(0)
    encoder: Encoder = build("encoders", f"bfan:dim=8,words=4,word_init=1{spec}").build((5, 6), 10)
    return encoder.eval()


def pictures() -> Tensor:
    return torch.randn(3, 5, 6, generator=torch.Generator().manual_seed(1))


def sides(encoder: Encoder) -> tuple[EncodedBatch, EncodedBatch]:
    with torch.no_grad():
        return encoder.encode_images(pictures()), encoder.encode_texts(pad(), LENGTHS)


def score(encoder: Encoder, images: EncodedBatch, texts: EncodedBatch) -> Tensor:
    S = encoder.score(images, texts)
    assert isinstance(S, Tensor)
    return S


@each("focal", ["equal", "prob"], "clip", ["leaky", "hard"])
def test_scores_equal_a_loop_over_pairs_and_queries(oracle: Oracles, focal: str, clip: str) -> None:
    encoder = model(f",focal={focal},clip={clip}").train()
    images, texts = sides(encoder)
    assert images.local is not None and texts.local is not None
    captions = [texts.local[j, : len(caption)] for j, caption in enumerate(CAPTIONS)]
    expected = oracle("bfan").scores(images.local, captions, focal, 20.0, clip)
    assert torch.allclose(score(encoder, images, texts), expected, atol=1e-5)
    assert expected.abs().max() <= 2


@both_focals
def test_evaluation_drops_what_float64_drops(oracle: Oracles, focal: str) -> None:
    encoder = model(f",focal={focal}").eval()
    images, texts = sides(encoder)
    assert images.local is not None and texts.local is not None
    captions = [texts.local[j, : len(caption)].double() for j, caption in enumerate(CAPTIONS)]
    expected = oracle("bfan").scores(images.local.double(), captions, focal, 20.0, tie=1e-12)
    assert torch.allclose(score(encoder, images, texts).double(), expected, atol=1e-5)


@both_focals
def test_the_kept_elements_equal_the_double_sum(oracle: Oracles, focal: str) -> None:
    generator = torch.Generator().manual_seed(0)
    for elements in range(2, 12):
        for sharpness in (0.5, 3.0, 20.0):
            a = (sharpness * torch.rand(1, elements, 6, 4, generator=generator, dtype=torch.float64)).softmax(1)
            kept = focus_attention(a, focal, torch.tensor([elements])) > 0  # type: ignore[arg-type]
            for i in range(6):
                for q in range(4):
                    assert kept[0, :, i, q].tolist() == oracle("bfan").is_kept(a[0, :, i, q], focal)


@each("focal", ["equal", "prob"], "elements", [1, 2, 3, 7, 36])
def test_equal_attention_stays_as_it_is(focal: str, elements: int) -> None:
    a = torch.zeros(2, elements, 3, 4).softmax(1)
    assert torch.equal(focus_attention(a, focal, torch.tensor([elements] * 2)), a)  # type: ignore[arg-type]


@both_focals
def test_ties_are_not_broken_by_rounding(focal: str) -> None:
    logits = torch.full((1, 5, 1, 200), 20.0) + 1e-5 * torch.rand(1, 5, 1, 200)
    a = logits.softmax(1)
    assert torch.allclose(focus_attention(a, focal, torch.tensor([5])), a)  # type: ignore[arg-type]


@both_focals
def test_absent_elements_get_no_attention(focal: str) -> None:
    logits = torch.randn(1, 4, 3, 2, generator=torch.Generator().manual_seed(4))
    alone = focus_attention(logits[:, :2].softmax(1), focal, torch.tensor([2]))  # type: ignore[arg-type]
    logits[:, 2:] = -torch.inf
    a = focus_attention(logits.softmax(1), focal, torch.tensor([2]))  # type: ignore[arg-type]
    assert torch.allclose(a[:, :2], alone) and not a[:, 2:].any()


@both_focals
def test_identical_regions_and_single_words_give_finite_scores_and_gradients(focal: str) -> None:
    encoder = model(f",focal={focal}").train()
    same = pictures()[:, :1].expand(-1, 5, -1)
    texts = encoder.encode_texts(torch.tensor([[1], [4]]), torch.tensor([1, 1]))
    S = score(encoder, encoder.encode_images(same), texts)
    S.sum().backward()
    assert S.isfinite().all()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in encoder.parameters())


def test_the_kept_elements_are_constant_in_the_gradient() -> None:
    logits = torch.randn(1, 5, 2, 2, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    H = (focus_attention(logits.softmax(1), "prob", torch.tensor([5])) > 0).double()

    def plain(x: Tensor) -> Tensor:
        a = x.softmax(1) * H
        return a / a.sum(1, keepdim=True)

    leaf, other = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    weights = torch.randn(logits.shape, generator=torch.Generator().manual_seed(6), dtype=torch.float64)
    (focus_attention(leaf.softmax(1), "prob", torch.tensor([5])) * weights).sum().backward()
    (plain(other) * weights).sum().backward()
    assert leaf.grad is not None and other.grad is not None
    assert torch.allclose(leaf.grad, other.grad, atol=1e-14) and leaf.grad.any()
