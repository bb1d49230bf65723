"""Pairwise scores in chunks: the graph of a chunk lives only while that chunk is being scored or differentiated.

Pass 1 scores every chunk and keeps nothing but S; the objective turns the whole S into W; pass 2 scores a chunk
again, with its graph, and sends the chunk's W back through it. Memory is one chunk, whatever the batch.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

if TYPE_CHECKING:
    from ..types import EncodedBatch

Again = Callable[[], contextlib.AbstractContextManager[None]]
IMAGES_AT_ONCE = 32  # a block of images that stays in the cache while it meets some captions


def two_pass(
    score: Callable[[EncodedBatch, EncodedBatch], Tensor],
    images: EncodedBatch,
    texts: EncodedBatch,
    pairs: int,
    again: Again = contextlib.nullcontext,
    images_at_once: int = IMAGES_AT_ONCE,
) -> Tensor:
    """S (n, m) from `score` on a block of images and as many captions at a time as make about `pairs` pairs.

    Captions of like length are scored together, without the padding that they share; where nothing of a chunk is
    missing, `score` is given no mask. Lengths are read from the device once, not for each chunk. again: entered around
    the second scoring of a chunk, for what must happen once only (running statistics). The random numbers of the second
    scoring (dropout) are those of the first. images_at_once: all of them where a score depends on which others are
    there.
    """
    order = by_length(texts)
    size = max(1, min(images_at_once, len(images)))
    chunks = _chunks(texts.rows(order.to(texts_device(texts))), max(1, pairs // size))
    rows = [torch.cat([_scored(score, block, chunk, again) for chunk in chunks], 1) for block in _chunks(images, size)]
    back = torch.empty_like(order)
    back[order] = torch.arange(len(order))
    return torch.cat(rows)[:, back.to(rows[0].device)]


def by_length(texts: EncodedBatch) -> Tensor:
    """(m,) rows of the captions, longest first, earlier ones first among equals; on the CPU."""
    if texts.mask is None:
        return torch.arange(len(texts))
    return texts.lengths.cpu().argsort(descending=True, stable=True)


def texts_device(texts: EncodedBatch) -> torch.device:
    """Where a side's tensors are."""
    return next(iter(texts.tensors.values())).device


def without_padding(side: EncodedBatch, lengths: Sequence[int]) -> EncodedBatch:
    """A side cut to the longest of its `lengths`, and without a mask where that is the length of all."""
    if side.mask is None or side.local is None:
        return side
    longest = max([1, *lengths])
    mask = None if all(length == longest for length in lengths) else side.mask[:, :longest]
    return replace(side, local=side.local[:, :longest], mask=mask)


def _chunks(side: EncodedBatch, size: int) -> list[EncodedBatch]:
    """A side in pieces of `size` items, each without the padding that they share."""
    lengths = [] if side.mask is None else side.lengths.tolist()
    return [without_padding(part, lengths[k * size : (k + 1) * size]) for k, part in enumerate(_parts(side, size))]


def _parts(side: EncodedBatch, size: int) -> list[EncodedBatch]:
    """A side in pieces of `size` items; their gradients come back in one piece."""
    split = {name: torch.split(tensor, size) for name, tensor in side.tensors.items()}
    count = len(next(iter(split.values())))
    return [type(side).of({name: pieces[i] for name, pieces in split.items()}) for i in range(count)]


def _scored(
    score: Callable[[EncodedBatch, EncodedBatch], Tensor], images: EncodedBatch, texts: EncodedBatch, again: Again
) -> Tensor:
    if not torch.is_grad_enabled():
        return score(images, texts)
    names, tensors = list(images.tensors), list(images.tensors.values())
    others, further = list(texts.tensors), list(texts.tensors.values())
    kind = type(images)

    def of(*given: Tensor) -> Tensor:
        first, second = given[: len(names)], given[len(names) :]
        return score(kind.of(dict(zip(names, first, strict=True))), kind.of(dict(zip(others, second, strict=True))))

    return checkpoint(  # type: ignore[no-any-return]
        of, *tensors, *further, use_reentrant=False, context_fn=lambda: (contextlib.nullcontext(), again())
    )
