"""Batches of one shape, stacked: one matrix product for all of them, and rows that objectives take as one batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from lossscope.core.batches import Batch
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.pair import Pair
from lossscope.core.similarity import Mask, SameImage, drop_unscored, pair_mask
from lossscope.core.types import Rows as Places
from lossscope.objectives.counting.buffers import Buffers
from lossscope.probes.views.view import BatchShape, DenseRows, Gradients

CELLS = 1 << 19  # similarities of one stack: what the caches of a core hold while objectives pass over them
_GATHERED = 1 << 10  # embeddings that are gathered before they are multiplied, which finds them in a cache


def stack_batches(batches: Sequence[Batch], cells: int = CELLS) -> Iterator[list[Batch]]:
    """Neighbours of one shape, as many as have `cells` similarities together, one at least."""
    found: list[Batch] = []
    for batch in batches:
        size = len(batch.images) * len(batch.captions)
        if found and (_shape(batch) != _shape(found[0]) or size * (len(found) + 1) > cells):
            yield found
            found = []
        found.append(batch)
    if found:
        yield found


def rows_of_stack(
    embedded: SplitEmbeddings,
    stack: Sequence[Batch],
    same_image: SameImage,
    embeddings: bool = False,
    keys: bool = False,
    space: Buffers | None = None,
    gradients: bool = False,
) -> Pair[DenseRows]:
    """Both directions of a stack. embeddings, keys, gradients: whether they are wanted (where the source has them).

    space: room that the next stack will use again.
    """
    images, captions = (np.stack([getattr(b, name) for b in stack]) for name in ("images", "captions"))
    v = t = None
    if embedded.images is not None and embedded.captions is not None:
        sources = embedded.images, embedded.captions
        S, v, t = _product(*sources, images, captions, space or Buffers(), len(stack) if embeddings else None)
        sides = Pair(S.flatten(0, 1), S.transpose(1, 2).flatten(0, 1))
        masks = _masks(stack, embedded.caption_image, same_image, S.device)
        if embeddings and len(stack) == 1:
            masks = Pair(_told(masks.i2t, v[0], t[0]), _told(masks.t2i, t[0], v[0]))
    else:
        sides, masks = _scored(embedded, stack, same_image)
    own = (_keys(embedded.keys.i2t, images), _keys(embedded.keys.t2i, captions)) if keys else (None, None)
    of = (torch.from_numpy(images), torch.from_numpy(embedded.caption_image[captions])) if keys else (None, None)
    live = embedded.layer_gradients if gradients and len(stack) == 1 else None
    back = (None, None) if live is None else tuple(live(images[0], captions[0]))
    return Pair(
        _rows(sides.i2t, masks.i2t, images, captions, v if embeddings else None, t, own, of, back[0]),
        _rows(sides.t2i, masks.t2i, captions, images, t if embeddings else None, v, own[::-1], of[::-1], back[1]),
    )


def _scored(
    embedded: SplitEmbeddings, stack: Sequence[Batch], same_image: SameImage
) -> tuple[Pair[Tensor], Pair[Mask]]:
    """Similarities that are no products of vectors, and masks without what was not scored."""
    each = [embedded.both(batch.images, batch.captions) for batch in stack]
    sides = Pair(torch.cat([one.i2t for one in each]), torch.cat([one.t2i for one in each]))
    masks = _masks(stack, embedded.caption_image, same_image, sides.i2t.device)
    (i2t, first), (t2i, second) = drop_unscored(sides.i2t, masks.i2t), drop_unscored(sides.t2i, masks.t2i)
    return Pair(i2t, t2i), Pair(first, second)


def _product(
    v: Tensor, t: Tensor, images: Places, captions: Places, room: Buffers, batches: int | None
) -> tuple[Tensor, Tensor, Tensor]:
    """(k, b, m) similarities of the batches, and the embeddings, (n, b, d) and (n, m, d), that were gathered last.

    batches: how many are gathered at once; None: as many as a cache holds, where the product then finds them.
    """
    S = room.room("S", (len(images), images.shape[1], captions.shape[1]), v.dtype, v.device)
    size = batches or max(_GATHERED // (images.shape[1] + captions.shape[1]), 1)
    for start in range(0, len(images), size):
        some = slice(start, start + size)
        own = _gathered("images", v, images[some], room), _gathered("captions", t, captions[some], room)
        torch.bmm(own[0], own[1].transpose(1, 2), out=S[some])
    return S, *own


def _gathered(name: str, side: Tensor, rows: Places, room: Buffers) -> Tensor:
    """(k, b, d) embeddings of the items of every batch."""
    shape = (rows.size, side.shape[1])
    found = room.room(name, shape, side.dtype, side.device)
    torch.index_select(side, 0, torch.from_numpy(rows.reshape(-1)).to(side.device), out=found)
    return found.view(*rows.shape, side.shape[1])


def _rows(
    S: Tensor,
    mask: Mask,
    queries: Places,
    candidates: Places,
    q: Tensor | None,
    c: Tensor | None,
    keys: tuple[Tensor | None, ...],
    groups: tuple[Tensor | None, ...],
    gradients: Gradients | None,
) -> DenseRows:
    shape = BatchShape(
        len(queries), mask.direction, torch.from_numpy(queries.reshape(-1)), torch.from_numpy(candidates)
    )
    return DenseRows(
        shape,
        S,
        mask,
        None if q is None else q.flatten(0, 1),
        None if q is None else c,
        None if keys[0] is None else keys[0].flatten(),
        keys[1],
        None if groups[0] is None else groups[0].flatten(),
        groups[1],
        gradients=gradients,
    )


def _masks(stack: Sequence[Batch], caption_image: Places, same_image: SameImage, device: torch.device) -> Pair[Mask]:
    """Both directions of all batches, one below the other."""
    first = stack[0]
    if first.mode != "images" and same_image == "keep":
        return _diagonals(len(stack), len(first.images), device)
    masks = [batch.mask(caption_image, same_image).to(device) for batch in stack]
    return Pair(_below(masks), _below([m.t() for m in masks]))


@lru_cache(maxsize=8)
def _diagonals(batches: int, pairs: int, device: torch.device) -> Pair[Mask]:
    """Masks of as many batches of plain pairs; the same in a whole sweep, so what is derived from them is kept."""
    one = pair_mask(torch.arange(pairs, device=device))
    return Pair(_below([one] * batches), _below([one.t()] * batches))


def _below(masks: list[Mask]) -> Mask:
    if len(masks) == 1:
        return masks[0]
    match, valid = torch.cat([m.match for m in masks]), torch.cat([m.valid for m in masks])
    return Mask(match, valid, direction=masks[0].direction)


def _told(mask: Mask, queries: Tensor, candidates: Tensor) -> Mask:
    """The mask with the embeddings, for objectives that want them."""
    return replace(mask, info={**mask.info, "queries": queries, "candidates": candidates})


def _keys(keys: Places | None, rows: Places) -> Tensor | None:
    return None if keys is None else torch.from_numpy(keys[rows])


def _shape(batch: Batch) -> tuple[str, int, int]:
    return batch.mode, len(batch.images), len(batch.captions)
