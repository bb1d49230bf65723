"""SCAN: scores equal a loop over pairs and queries, and names are the original's."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from types import ModuleType

import torch
from torch import Tensor

from lossscope.encoders.base import Encoder
from lossscope.encoders.types import EncodedBatch
from lossscope.registry import build
from tests.each import each

Oracles = Callable[[str], ModuleType]
CAPTIONS = [[1, 5, 6, 2], [1], [1, 4, 5, 9, 7, 2], [1, 2], [1, 7, 2]]
LENGTHS = torch.tensor([len(caption) for caption in CAPTIONS])


def pad(captions: list[list[int]] = CAPTIONS, more: int = 0) -> Tensor:
    longest = max(map(len, captions)) + more
    return torch.tensor([caption + [0] * (longest - len(caption)) for caption in captions])


def model(spec: str = "") -> Encoder:
    torch.manual_seed(0)
    encoder: Encoder = build("encoders", f"scan:dim=8,words=4,word_init=1{spec}").build((5, 6), 10)
    return encoder.eval()


def pictures(n: int = 3) -> Tensor:
    return torch.randn(n, 5, 6, generator=torch.Generator().manual_seed(1))


def sides(encoder: Encoder) -> tuple[EncodedBatch, EncodedBatch]:
    with torch.no_grad():
        return encoder.encode_images(pictures()), encoder.encode_texts(pad(), LENGTHS)


def unit_vectors(*shape: int) -> Tensor:
    vectors = torch.randn(*shape, generator=torch.Generator().manual_seed(2))
    return torch.nn.functional.normalize(vectors, dim=-1)


@each("spec", ["", ",bi_gru=false", ",weight_norm=true"])
def test_towers_equal_those_of_one_item_at_a_time(oracle: Oracles, spec: str) -> None:
    encoder = model(spec)
    images, texts = sides(encoder)
    assert images.local is not None and texts.local is not None and texts.mask is not None
    state = encoder.state_dict()
    assert torch.allclose(images.local, oracle("scan").regions(state, pictures()), atol=1e-6)
    assert torch.equal(texts.lengths, LENGTHS)
    for row, caption in enumerate(CAPTIONS):
        expected = oracle("scan").words(state, caption)
        assert torch.allclose(texts.local[row, : len(caption)], expected, atol=1e-6)
    assert not texts.local[~texts.mask].any(), "padded words must be zero vectors"


@each("direction, pool", list(product(["t2i", "i2t"], ["avg", "lse", "sum", "max"])))
def test_scores_equal_a_loop_over_pairs_and_queries(oracle: Oracles, direction: str, pool: str) -> None:
    encoder = model(f",direction={direction},pool={pool}")
    images, texts = sides(encoder)
    assert images.local is not None and texts.local is not None
    captions = [texts.local[j, : len(caption)] for j, caption in enumerate(CAPTIONS)]
    expected = oracle("scan").scores(images.local, captions, direction, pool, {"t2i": 9, "i2t": 4}[direction])
    assert torch.allclose(encoder.score(images, texts), expected, atol=1e-5)


@each(
    "direction",
    ["t2i", "i2t"],
    "norm, clip",
    [
        ("clipped_l2norm", "hard"),
        ("l2norm", "leaky"),
        ("clipped_l1norm", "leaky"),
        ("clipped_l1norm", "hard"),
        ("l1norm", "leaky"),
        ("clipped", "leaky"),
        ("softmax", "leaky"),
        ("no_norm", "leaky"),
    ],
)
def test_every_norm_equals_the_loop(oracle: Oracles, direction: str, norm: str, clip: str) -> None:
    encoder = model(f",direction={direction},norm={norm},clip={clip},lambda_softmax=7")
    images, texts = sides(encoder)
    assert images.local is not None and texts.local is not None
    captions = [texts.local[j, : len(caption)] for j, caption in enumerate(CAPTIONS)]
    expected = oracle("scan").scores(images.local, captions, direction, "avg", 7.0, norm=norm, clip=clip)
    assert torch.allclose(encoder.score(images, texts), expected, atol=1e-5)


def test_clips_differ() -> None:
    assert not torch.allclose(model().score(*sides(model())), model(",clip=hard").score(*sides(model())), atol=1e-4)


@each("direction", ["t2i", "i2t"])
def test_the_closed_form_keeps_its_precision_at_the_original_width(oracle: Oracles, direction: str) -> None:
    encoder = model(f",direction={direction}")
    images, words = unit_vectors(2, 36, 1024), unit_vectors(3, 13, 1024)
    images[1] = torch.nn.functional.normalize(images[1] + 3 * images[1, :1], dim=-1)  # regions that are much alike
    S = encoder.score(EncodedBatch(None, images), EncodedBatch(None, words, torch.ones(3, 13, dtype=torch.bool)))
    expected = oracle("scan").scores(
        images.double(), list(words.double()), direction, "avg", {"t2i": 9, "i2t": 4}[direction]
    )
    assert torch.allclose(S.double(), expected, atol=1e-6)


def test_features_of_half_precision_are_read() -> None:
    encoder = model()
    assert torch.allclose(encoder.encode_images(pictures().half()).local, sides(encoder)[0].local, atol=1e-2)  # type: ignore[arg-type]
