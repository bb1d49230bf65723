"""Has scoring in chunks the gradient of one pass, the memory of one chunk and the first scoring's random numbers?"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from lossscope.encoders.base import Encoder
from lossscope.encoders.layers.chunked_scores import order_by_length, score_in_chunks
from lossscope.encoders.types import EncodedBatch
from lossscope.errors import InputError
from lossscope.registry import build
from tests.each import each
from tests.encoders.examples import examples

SMALL = "dim=6,words=3,word_init=1"
SPECS = [
    *(f"scan:direction={d},pool={p},{SMALL}" for d in ("t2i", "i2t") for p in ("avg", "lse", "sum", "max")),
    *(f"scan:norm={n},{SMALL}" for n in ("l2norm", "l1norm", "clipped_l1norm", "clipped", "softmax", "no_norm")),
    *(f"bfan:focal={focal},{SMALL}" for focal in ("equal", "prob")),
    *(f"sgraf:module={module},sim_dim=5,dropout={p},{SMALL}" for module in ("sgr", "saf") for p in (0, 0.4)),
]
LENGTHS = torch.tensor([2, 5, 3, 3, 6, 2, 4])
every_spec = each("spec", SPECS)


def ids() -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(1, 9, (7, 6), generator=generator) * (torch.arange(6) < LENGTHS[:, None])


def model(spec: str) -> Encoder:
    torch.manual_seed(0)
    encoder: Encoder = build("encoders", spec).build((4, 5), 9).double().train()
    return encoder


def sides(encoder: Encoder) -> tuple[EncodedBatch, EncodedBatch]:
    """Return five images and seven captions as leaves of the graph."""
    images = torch.randn(5, 4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    torch.manual_seed(2)
    with torch.no_grad():
        batches = encoder.encode_images(images), encoder.encode_texts(ids(), LENGTHS)
    for side in batches:
        for tensor in side.tensors.values():
            tensor.requires_grad_(tensor.is_floating_point())
    return batches


def mask_of(side: EncodedBatch) -> Tensor:
    assert side.mask is not None
    return side.mask


def gradients(encoder: Encoder, S: Tensor, images: EncodedBatch, texts: EncodedBatch) -> dict[str, Tensor]:
    """Return d Σ W S for each tensor of the batches and each parameter, by name; W is arbitrary but fixed."""
    W = torch.randn(S.shape, dtype=S.dtype, generator=torch.Generator().manual_seed(3))
    leaves = {f"images.{k}": v for k, v in images.tensors.items() if v.requires_grad}
    leaves |= {f"texts.{k}": v for k, v in texts.tensors.items() if v.requires_grad} | dict(encoder.named_parameters())
    values = torch.autograd.grad(S, list(leaves.values()), W, allow_unused=True)
    return {name: grad for name, grad in zip(leaves, values, strict=True) if grad is not None}


@cache
def pairwise_names() -> tuple[str, ...]:
    """Return the encoders of the registry that take regions and score pairs in their first example."""
    first = {example.name: example for example in reversed(examples())}
    pairwise = []
    for name, example in sorted(first.items()):
        if example.kind not in ("regions", None):
            continue
        with torch.device("meta"), contextlib.suppress(InputError):
            if example.options().build((36, 2048), 10).pairwise:
                pairwise.append(name)
    return tuple(pairwise)


def test_every_pairwise_encoder_of_regions_is_tested_here() -> None:
    assert pairwise_names() == tuple(sorted({spec.partition(":")[0] for spec in SPECS}))


@each("spec", SPECS, "captions", [1, 3, 7])
def test_the_gradient_is_that_of_one_pass(spec: str, captions: int) -> None:
    encoder = model(spec)
    images, texts = sides(encoder)
    whole = encoder.score_pairs(images, texts)
    expected = gradients(encoder, whole, images, texts)
    encoder.pairs_per_chunk = captions * len(images)
    in_chunks = encoder.score(images, texts)
    assert isinstance(in_chunks, Tensor)
    assert torch.allclose(in_chunks, whole, rtol=0, atol=1e-12)
    chunked = gradients(encoder, in_chunks, images, texts)
    assert chunked.keys() == expected.keys() and {"images.local", "texts.local"} <= chunked.keys()
    for name, gradient in expected.items():
        assert torch.allclose(chunked[name], gradient, rtol=0, atol=1e-10), name
    assert not expected["texts.local"][~mask_of(texts)].any(), "padding has no gradient"


@each("spec", SPECS, "block", [1, 2])
def test_blocks_of_images_change_nothing(spec: str, block: int) -> None:
    encoder = model(spec).eval()
    images, texts = sides(encoder)
    whole = encoder.score_pairs(images, texts)
    in_chunks = score_in_chunks(encoder.score_pairs, images, texts, 3 * block, images_per_chunk=block)
    assert torch.allclose(in_chunks, whole, rtol=0, atol=1e-12)
    expected, chunked = gradients(encoder, whole, images, texts), gradients(encoder, in_chunks, images, texts)
    for name, gradient in expected.items():
        assert torch.allclose(chunked[name], gradient, rtol=0, atol=1e-10), name


@every_spec
def test_without_a_gradient_the_scores_are_the_same(spec: str) -> None:
    encoder = model(spec).eval()
    images, texts = sides(encoder)
    with torch.no_grad():
        S = score_in_chunks(encoder.score_pairs, images, texts, 6)
    assert not S.requires_grad
    assert torch.allclose(S, encoder.score_pairs(images, texts), rtol=0, atol=1e-12)


def plain_sides() -> tuple[EncodedBatch, EncodedBatch]:
    generator = torch.Generator().manual_seed(4)
    images = torch.rand(3, 2, generator=generator).requires_grad_()
    texts = torch.rand(6, 2, generator=generator).requires_grad_()
    return EncodedBatch(images), EncodedBatch(texts)


def test_the_second_scoring_draws_the_random_numbers_of_the_first() -> None:
    images, texts = plain_sides()
    torch.manual_seed(5)
    S = score_in_chunks(lambda a, b: torch.dropout(a.vectors @ b.vectors.T, 0.5, True), images, texts, 6)
    torch.rand(17)  # what training draws in between
    state = torch.get_rng_state()
    kept = 2.0 * (S.detach() != 0)
    assert 0 < kept.sum() < 2 * kept.numel()
    S.sum().backward()
    assert images.vectors.grad is not None
    assert torch.allclose(images.vectors.grad, kept @ texts.vectors.detach())
    assert torch.equal(torch.get_rng_state(), state), "the second scoring must leave the generator as it was"


def test_the_graph_of_a_chunk_is_not_kept() -> None:
    images, texts = plain_sides()
    storages: list[StorageWeakRef] = []
    alive: list[int] = []

    def score(a: EncodedBatch, b: EncodedBatch) -> Tensor:
        alive.append(sum(not ref.expired() for ref in storages))
        inner = (a.vectors[:, None] * b.vectors).exp()  # kept by its own backward
        storages.append(StorageWeakRef(inner.untyped_storage()))
        return inner.square().sum(2)

    S = score(images, texts)
    assert not storages[0].expired(), "one pass must keep what its gradient needs, or the test says nothing"
    del S
    storages.clear()
    alive.clear()
    S = score_in_chunks(score, images, texts, 6)
    assert len(storages) == 3 and all(ref.expired() for ref in storages)
    S.sum().backward()
    assert len(storages) == 6 and alive == [0] * 6
    assert all(ref.expired() for ref in storages)


def test_on_replay_is_entered_around_the_second_scoring_only() -> None:
    images, texts = plain_sides()
    inside: list[bool] = []
    now = [False]

    @contextlib.contextmanager
    def on_replay() -> Iterator[None]:
        now[0] = True
        try:
            yield
        finally:
            now[0] = False

    def score(a: EncodedBatch, b: EncodedBatch) -> Tensor:
        inside.append(now[0])
        return (a.vectors @ b.vectors.T).exp()

    score_in_chunks(score, images, texts, 6, on_replay).sum().backward()
    assert inside == [False] * 3 + [True] * 3
    assert not now[0]


def test_captions_of_similar_length_are_scored_together_and_keep_their_order() -> None:
    mask = torch.arange(6) < LENGTHS[:, None]
    texts = EncodedBatch(None, torch.arange(7.0)[:, None, None].expand(7, 6, 1), mask)
    assert order_by_length(texts).tolist() == [4, 1, 6, 2, 3, 0, 5]
    seen: list[tuple[int, int]] = []

    def score(a: EncodedBatch, b: EncodedBatch) -> Tensor:
        assert b.local is not None
        seen.append((len(b), b.local.shape[1]))
        assert b.mask is None or (b.mask.shape == b.local.shape[:2] and not b.mask.all())
        return b.local[:, 0, 0].expand(len(a), len(b))

    S = score_in_chunks(score, EncodedBatch(torch.zeros(2, 1)), texts, 6)
    assert torch.equal(S, torch.arange(7.0).expand(2, 7))
    assert seen == [(3, 6), (3, 3), (1, 2)]


@every_spec
def test_no_chunk_reads_a_number_from_the_device(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading a number stops the device; lengths are copied once for all chunks, for any number of chunks.

    BFAN is in training: in eval it reads which pairs float32 cannot decide, once a chunk.
    """
    encoder = model(spec).train(spec.startswith("bfan"))
    images, texts = sides(encoder)
    reads: list[str] = []

    def watched(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def read(self: Tensor, *more: Any) -> Any:
            reads.append(name)
            return real(self, *more)

        return read

    for name in ("__bool__", "__int__", "__float__", "__index__", "item", "tolist", "cpu", "nonzero"):
        monkeypatch.setattr(Tensor, name, watched(name, getattr(Tensor, name)))
    counts = []
    for pairs in (100, 10, 2):
        reads.clear()
        with torch.no_grad():
            score_in_chunks(encoder.score_pairs, images, texts, pairs, images_per_chunk=2)
        counts.append(len(reads))
    assert counts[0] == counts[1] == counts[2] <= 3, reads


def test_chunks_without_padding_have_no_mask() -> None:
    mask = torch.arange(6) < torch.tensor([3, 3, 3, 2, 0, 0])[:, None]
    texts = EncodedBatch(None, torch.ones(6, 6, 1), mask)
    seen: list[tuple[int, bool]] = []

    def score(a: EncodedBatch, b: EncodedBatch) -> Tensor:
        assert a.local is not None and b.local is not None and a.mask is None
        seen.append((b.local.shape[1], b.mask is None))
        return b.local.new_zeros(len(a), len(b))

    score_in_chunks(score, EncodedBatch(None, torch.ones(2, 4, 1), torch.ones(2, 4, dtype=torch.bool)), texts, 4)
    assert seen == [(3, True), (3, False), (1, False)]


def test_at_least_one_pair_is_scored_at_a_time() -> None:
    images, texts = plain_sides()
    S = score_in_chunks(lambda a, b: a.vectors @ b.vectors.T, images, texts, 1)
    assert torch.allclose(S, images.vectors @ texts.vectors.T)
