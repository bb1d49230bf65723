"""Size augmentation: what a training step leaves out of sets of regions, cells and words, or changes in them.

All random numbers come from torch's global generator on the CPU. Nothing is ever left empty: an item of which
nothing would stay is taken whole.
"""

from __future__ import annotations

import torch
from torch import Tensor

MASKED, RANDOM = 0.5, 0.6  # of the words that are hit: below the first masked, below the second replaced, else deleted


def kept_regions(present: Tensor, share: float) -> Tensor:
    """(n, L) bool present -> kept: each region is dropped with probability `share`."""
    return _not_empty(present & _uniform(present, present.shape).gt(share), present)


def kept_cells(present: Tensor, share: float) -> Tensor:
    """The same for cells of a grid, whose rate is share · v, v ~ U(0, 1) of each picture, and 0 where v <= share."""
    v = _uniform(present, (len(present), 1))
    rate = torch.where(v > share, share * v, -1.0)
    return _not_empty(present & (_uniform(present, present.shape) > rate), present)


def packed(x: Tensor, kept: Tensor) -> tuple[Tensor, Tensor]:
    """(n, L, ...) and (n, L) bool -> what is kept moved to the front, zeros after it, and (n,) lengths on the CPU."""
    order = (~kept).to(torch.uint8).argsort(dim=1, stable=True)
    lengths = kept.sum(1)
    longest = int(lengths.max())
    shape = (len(x), longest, *[1] * (x.ndim - 2))
    index = order[:, :longest].reshape(shape).expand(-1, -1, *x.shape[2:])
    there = torch.arange(longest, device=x.device) < lengths[:, None]
    return x.gather(1, index) * there.reshape(shape), lengths.cpu()


def perturbed_words(
    ids: Tensor, lengths: Tensor, starts: Tensor, fixed: Tensor, mask_id: int, size: int, share: float
) -> tuple[Tensor, Tensor]:
    """Each word is hit with probability `share`: half the time its parts become `mask_id`, a tenth of the time each
    part becomes a random id below `size`, else (0.4) all its parts are deleted.

    (n, L) ids and (n,) lengths on the CPU -> the same, shorter. starts: (n, L) bool, the first part of each word;
    fixed: (n, L) bool, never touched.
    """
    present = torch.arange(ids.shape[1], device=ids.device) < lengths.to(ids.device)[:, None]
    word = (starts.long().cumsum(1) - 1).clamp(min=0)
    draw = _uniform(ids, ids.shape).gather(1, word) / max(share, 1e-12)  # below 1: hit, and what happens
    hit = (draw < 1) & present & ~fixed
    ids = ids.masked_fill(hit & (draw < MASKED), mask_id)
    instead = torch.randint(size, ids.shape).to(ids.device)
    ids = torch.where(hit & (draw >= MASKED) & (draw < RANDOM), instead, ids)
    return packed(ids, _not_empty(present & ~(hit & (draw >= RANDOM)), present))


def _uniform(like: Tensor, shape: tuple[int, ...]) -> Tensor:
    return torch.rand(shape).to(like.device)


def _not_empty(kept: Tensor, present: Tensor) -> Tensor:
    return torch.where(kept.any(1, keepdim=True), kept, present)
