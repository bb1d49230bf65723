"""Stack batches of one shape: they share a matrix product, and objectives read their rows as one batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import islice

import numpy as np
import torch
from torch import Tensor

from lossscope.core.batches import Batch
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.pair import Pair
from lossscope.core.relations import Relations
from lossscope.core.similarity import Mask, drop_unscored, pair_mask
from lossscope.core.types import Rows, SameImage
from lossscope.objectives.counting.block import Buffers
from lossscope.probes.views.view import BatchShape, DenseRows

from .row_items import with_items

STACK_ENTRIES = 1 << 20  # entries of S of a stack: 4 MB, which fit into caches; smaller stacks spend more in Python
_GATHERED = 1 << 10  # embeddings gathered before each product, which then finds them in a cache


def stack_batches(batches: Iterable[Batch], entries: int = STACK_ENTRIES) -> Iterator[list[Batch]]:
    """Yield stacks of consecutive batches of one shape, with at most `entries` similarities unless a single batch."""
    stack: list[Batch] = []
    for batch in batches:
        size = len(batch.images) * len(batch.captions)
        if stack and (_shape(batch) != _shape(stack[0]) or size * (len(stack) + 1) > entries):
            yield stack
            stack = []
        stack.append(batch)
    if stack:
        yield stack


def rows_of_stack(
    embedded: SplitEmbeddings,
    stack: Sequence[Batch],
    same_image: SameImage,
    embeddings: bool = False,
    keys: bool = False,
    buffers: Buffers | None = None,
    gradients: bool = False,
) -> tuple[DenseRows, ...]:
    """Return the rows of S of both directions of a stack; a single set has one direction.

    Args:
        embedded: the split.
        stack: batches of one shape.
        same_image: role of another positive of the same item, see `Batch.mask`.
        embeddings: include the embeddings, if the split has them.
        keys: include the input keys of queries and candidates, and the pairs that are known positives.
        buffers: memory that the next stack reuses.
        gradients: include the gradients of layers, if the split has a model; only for a stack of one batch.
    """
    relations = embedded.relations
    embedded = embedded.joined if stack[0].mode == "views" else embedded
    images, captions = (np.stack([getattr(b, name) for b in stack]) for name in ("images", "captions"))
    v = t = None
    buffers = buffers or Buffers()
    if embedded.images is not None and embedded.captions is not None:
        sources = embedded.images, embedded.captions
        S, v, t = _multiply(*sources, images, captions, buffers, len(stack) if embeddings else None)
        turned = S.transpose(1, 2)
        if len(stack) > 1:  # a single batch keeps its transposed layout, which decides the last bits of sums
            turned = buffers.get("S t2i", tuple(turned.shape), S.dtype, S.device).copy_(turned)
        both = Pair(S.flatten(0, 1), turned.flatten(0, 1))
        masks = _masks(stack, relations, same_image, S.device)
        if embeddings and len(stack) == 1:
            masks = Pair(_with_embeddings(masks.i2t, v[0], t[0]), _with_embeddings(masks.t2i, t[0], v[0]))
    else:
        both, masks = _score(embedded, stack, same_image)
    layer_gradients = embedded.layer_gradients if gradients and len(stack) == 1 else None
    backward = (None, None) if layer_gradients is None else tuple(layer_gradients(images[0], captions[0]))
    sides = ((images, v), (captions, t)) if embeddings else ((images, None), (captions, None))
    directions = zip(both, masks, (sides, sides[::-1]), backward, strict=True)
    return tuple(
        with_items(embedded, replace(_rows(S, mask, queries, candidates), gradients=of_layers, buffers=buffers), keys)
        for S, mask, (queries, candidates), of_layers in islice(directions, len(stack[0].directions))
    )


def _score(embedded: SplitEmbeddings, stack: Sequence[Batch], same_image: SameImage) -> tuple[Pair[Tensor], Pair[Mask]]:
    """Return similarities that are not products of vectors, and masks without the unscored entries."""
    batches = [embedded.similarities(batch.images, batch.captions) for batch in stack]
    both = Pair(torch.cat([S.i2t for S in batches]), torch.cat([S.t2i for S in batches]))
    masks = _masks(stack, embedded.relations, same_image, both.i2t.device)
    (i2t, i2t_mask), (t2i, t2i_mask) = drop_unscored(both.i2t, masks.i2t), drop_unscored(both.t2i, masks.t2i)
    return Pair(i2t, t2i), Pair(i2t_mask, t2i_mask)


def _multiply(
    v: Tensor, t: Tensor, images: Rows, captions: Rows, buffers: Buffers, at_once: int | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return S of the batches, (k, b, m), and the last gathered embeddings, (n, b, d) and (n, m, d).

    Args:
        v: (N, d) embeddings of all images.
        t: (M, d) embeddings of all captions.
        images: (k, b) rows of the images of each batch.
        captions: (k, m) rows of the captions of each batch.
        buffers: memory of the three results.
        at_once: number n of batches to gather at once; None: as many as stay in a cache until the product.
    """
    S = buffers.get("S", (len(images), images.shape[1], captions.shape[1]), v.dtype, v.device)
    size = at_once or max(_GATHERED // (images.shape[1] + captions.shape[1]), 1)
    for start in range(0, len(images), size):
        part = slice(start, start + size)
        gathered = _gather("images", v, images[part], buffers), _gather("captions", t, captions[part], buffers)
        torch.bmm(gathered[0], gathered[1].transpose(1, 2), out=S[part])
    return S, *gathered


def _gather(name: str, embeddings: Tensor, rows: Rows, buffers: Buffers) -> Tensor:
    """(k, b, d) embeddings of the items of every batch, from (k, b) rows."""
    d = embeddings.shape[1]
    gathered = buffers.get(name, (rows.size, d), embeddings.dtype, embeddings.device)
    torch.index_select(embeddings, 0, torch.from_numpy(rows.reshape(-1)).to(embeddings.device), out=gathered)
    return gathered.view(*rows.shape, d)


_Items = tuple[Rows, Tensor | None]
"""(k, n) rows of items in the split, and their (k, n, d) embeddings; None if the split has none or none are needed."""


def _rows(S: Tensor, mask: Mask, of_queries: _Items, of_candidates: _Items) -> DenseRows:
    """Build the rows of one direction.

    Args:
        S: (k·q, c).
        mask: of all rows.
        of_queries: the queries of each batch.
        of_candidates: the candidates of each batch.
    """
    (queries, q), (candidates, c) = of_queries, of_candidates
    ids, k = torch.from_numpy(queries.reshape(-1)), len(queries)
    shape = BatchShape(k, mask.direction, ids, torch.from_numpy(candidates))
    q = None if q is None else q.flatten(0, 1)
    return DenseRows(shape, S, mask, q, c)


def _masks(stack: Sequence[Batch], relations: Relations, same_image: SameImage, device: torch.device) -> Pair[Mask]:
    """Return the masks of both directions, with the batches one below the other."""
    first = stack[0]
    if first.mode in ("pairs", "single") and same_image == "keep" and not first.own_negatives:
        return _diagonal_masks(len(stack), len(first.images), len(first.captions), device)
    masks = [batch.mask(relations, same_image).to(device) for batch in stack]
    return Pair(_concatenate(masks), _concatenate([m.t() for m in masks]))


@lru_cache(maxsize=8)
def _diagonal_masks(batches: int, pairs: int, candidates: int, device: torch.device) -> Pair[Mask]:
    """Return the masks of batches of plain pairs: the same objects in a whole sweep, with their cached properties.

    Candidates behind those of the pairs are negatives of all queries.
    """
    if candidates == pairs:
        mask = pair_mask(torch.arange(pairs, device=device))
    else:
        match = torch.eye(pairs, candidates, dtype=torch.bool, device=device)
        mask = Mask(match, torch.ones_like(match))
    return Pair(_concatenate([mask] * batches), _concatenate([mask.t()] * batches))


def _concatenate(masks: list[Mask]) -> Mask:
    if len(masks) == 1:
        return masks[0]
    match, valid = torch.cat([m.match for m in masks]), torch.cat([m.valid for m in masks])
    return Mask(match, valid, direction=masks[0].direction)


def _with_embeddings(mask: Mask, queries: Tensor, candidates: Tensor) -> Mask:
    """Return the mask with the embeddings as info, for objectives that need them."""
    return replace(mask, info={**mask.info, "queries": queries, "candidates": candidates})


def _shape(batch: Batch) -> tuple[str, int, int]:
    return batch.mode, len(batch.images), len(batch.captions)
