"""Size augmentation: which regions, cells and words a training step drops from a set, or changes.

All random numbers come from torch's global generator on the CPU. No set is ever emptied: one that would lose
everything stays whole.
"""

from __future__ import annotations

import torch
from torch import Tensor

MASKED, RANDOM = 0.5, 0.6  # of the selected words: below the first masked, below the second replaced, else deleted


def keep_regions(present: Tensor, share: float) -> Tensor:
    """Return (n, L) bool, the regions that stay: each present one is dropped with probability `share`."""
    return _keep_nonempty(present & _uniform(present, present.shape).gt(share), present)


def keep_cells(present: Tensor, share: float) -> Tensor:
    """Return (n, L) bool, the cells of a grid that stay.

    The rate of a picture is share · v, v ~ U(0, 1), and 0 where v <= share.
    """
    v = _uniform(present, (len(present), 1))
    rate = torch.where(v > share, share * v, -1.0)
    return _keep_nonempty(present & (_uniform(present, present.shape) > rate), present)


def pack(x: Tensor, kept: Tensor) -> tuple[Tensor, Tensor]:
    """Move what is kept to the front: (n, L, ...), (n, L) bool -> the same with zeros behind, and (n,) lengths.

    The lengths are on the CPU.
    """
    order = (~kept).to(torch.uint8).argsort(dim=1, stable=True)
    lengths = kept.sum(1)
    longest = int(lengths.max())
    shape = (len(x), longest, *[1] * (x.ndim - 2))
    index = order[:, :longest].reshape(shape).expand(-1, -1, *x.shape[2:])
    present = torch.arange(longest, device=x.device) < lengths[:, None]
    return x.gather(1, index) * present.reshape(shape), lengths.cpu()


def perturb_words(
    ids: Tensor, lengths: Tensor, starts: Tensor, fixed: Tensor, mask_id: int, size: int, share: float
) -> tuple[Tensor, Tensor]:
    """Select each word with probability `share`, then mask it (0.5), replace it (0.1) or delete it (0.4).

    A masked word has `mask_id` for all its parts, a replaced one a random id below `size` for each part.
    Returns ids and lengths, which are shorter.

    Args:
        ids: (n, L).
        lengths: (n,) on the CPU.
        starts: (n, L) bool, the first part of each word.
        fixed: (n, L) bool, positions that never change.
        mask_id: id of the mask.
        size: number of ids.
        share: probability that a word is selected.
    """
    present = torch.arange(ids.shape[1], device=ids.device) < lengths.to(ids.device)[:, None]
    word = (starts.long().cumsum(1) - 1).clamp(min=0)
    # below 1 a word is selected, and the value decides what happens to it
    draw = _uniform(ids, ids.shape).gather(1, word) / max(share, 1e-12)
    selected = (draw < 1) & present & ~fixed
    ids = ids.masked_fill(selected & (draw < MASKED), mask_id)
    replacement = torch.randint(size, ids.shape).to(ids.device)
    ids = torch.where(selected & (draw >= MASKED) & (draw < RANDOM), replacement, ids)
    return pack(ids, _keep_nonempty(present & ~(selected & (draw >= RANDOM)), present))


def _uniform(like: Tensor, shape: tuple[int, ...]) -> Tensor:
    return torch.rand(shape).to(like.device)


def _keep_nonempty(kept: Tensor, present: Tensor) -> Tensor:
    """Return `kept`, but all that is present in rows of which nothing would stay."""
    return torch.where(kept.any(1, keepdim=True), kept, present)
