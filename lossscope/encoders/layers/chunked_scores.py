"""Pairwise scores in chunks: a chunk's graph exists only while the chunk is scored or differentiated.

Pass 1 scores all chunks and stores nothing but S; the objective turns the whole S into W; pass 2 scores each chunk
again, with its graph, and backpropagates the chunk's W. Memory is that of one chunk, for any batch.
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

ReplayContext = Callable[[], contextlib.AbstractContextManager[None]]
IMAGES_PER_CHUNK = 32  # a block of images stays in the cache while it is scored with some captions


def score_in_chunks(
    score: Callable[[EncodedBatch, EncodedBatch], Tensor],
    images: EncodedBatch,
    texts: EncodedBatch,
    pairs: int,
    on_replay: ReplayContext = contextlib.nullcontext,
    images_per_chunk: int = IMAGES_PER_CHUNK,
) -> Tensor:
    """Return S (n, m), from `score` of a block of images and as many captions at a time as make about `pairs` pairs.

    Captions of similar length are scored together, without the padding that they share; where no caption of a chunk has
    padding, `score` gets no mask. Lengths are copied from the device once, not for each chunk. The random numbers
    (dropout) of the second scoring are those of the first.

    Args:
        score: S of some images and some captions.
        images: all images.
        texts: all captions.
        pairs: pairs of a chunk.
        on_replay: context around the second scoring of a chunk, for what must happen once only (running statistics).
        images_per_chunk: images of a block; all of them where a score depends on the other images.
    """
    order = order_by_length(texts)
    size = max(1, min(images_per_chunk, len(images)))
    chunks = _split_trimmed(texts.select(order.to(device_of(texts))), max(1, pairs // size))
    rows = [
        torch.cat([_score_chunk(score, block, chunk, on_replay) for chunk in chunks], 1)
        for block in _split_trimmed(images, size)
    ]
    inverse = torch.empty_like(order)
    inverse[order] = torch.arange(len(order))
    return torch.cat(rows)[:, inverse.to(rows[0].device)]


def order_by_length(texts: EncodedBatch) -> Tensor:
    """Return the (m,) rows of the captions, longest first, in their order among equal lengths; on the CPU."""
    if texts.mask is None:
        return torch.arange(len(texts))
    return texts.lengths.cpu().argsort(descending=True, stable=True)


def device_of(batch: EncodedBatch) -> torch.device:
    """Return the device of a batch's tensors."""
    return next(iter(batch.tensors.values())).device


def trim_padding(batch: EncodedBatch, lengths: Sequence[int]) -> EncodedBatch:
    """Return the batch cut to the longest of its `lengths`, and without a mask where all lengths are equal."""
    if batch.mask is None or batch.local is None:
        return batch
    longest = max([1, *lengths])
    mask = None if all(length == longest for length in lengths) else batch.mask[:, :longest]
    return replace(batch, local=batch.local[:, :longest], mask=mask)


def _split_trimmed(batch: EncodedBatch, size: int) -> list[EncodedBatch]:
    """Return the batch in pieces of `size` items, each without the padding that its items share."""
    lengths = [] if batch.mask is None else batch.lengths.tolist()
    return [trim_padding(part, lengths[k * size : (k + 1) * size]) for k, part in enumerate(_split(batch, size))]


def _split(batch: EncodedBatch, size: int) -> list[EncodedBatch]:
    """Return the batch in pieces of `size` items; their gradients arrive as one tensor."""
    pieces = {name: torch.split(tensor, size) for name, tensor in batch.tensors.items()}
    count = len(next(iter(pieces.values())))
    return [type(batch).from_tensors({name: parts[i] for name, parts in pieces.items()}) for i in range(count)]


def _score_chunk(
    score: Callable[[EncodedBatch, EncodedBatch], Tensor],
    images: EncodedBatch,
    texts: EncodedBatch,
    on_replay: ReplayContext,
) -> Tensor:
    """Return the scores of a chunk, whose graph is recomputed for the gradient."""
    if not torch.is_grad_enabled():
        return score(images, texts)
    names, tensors = list(images.tensors), list(images.tensors.values())
    text_names, text_tensors = list(texts.tensors), list(texts.tensors.values())
    kind = type(images)

    def score_tensors(*values: Tensor) -> Tensor:
        first, second = values[: len(names)], values[len(names) :]
        return score(
            kind.from_tensors(dict(zip(names, first, strict=True))),
            kind.from_tensors(dict(zip(text_names, second, strict=True))),
        )

    return checkpoint(  # type: ignore[no-any-return]
        score_tensors,
        *tensors,
        *text_tensors,
        use_reentrant=False,
        context_fn=lambda: (contextlib.nullcontext(), on_replay()),
    )
