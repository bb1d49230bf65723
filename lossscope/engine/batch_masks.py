"""Which entries of a batch's S are positives? Pairs on the diagonal, pairs at an offset, or a mask from the caller."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor

from lossscope.core.sides import IMAGE_TEXT, Sides, plural
from lossscope.core.similarity import Mask
from lossscope.core.types import Direction
from lossscope.errors import InputError


def i2t_mask(S: Tensor, mask: Mask, sides: Sides = IMAGE_TEXT) -> Mask:
    """Return the caller's mask on the device of S.

    Args:
        S: similarities of the first side (rows) and the second.
        mask: must have the direction i2t.
        sides: names of rows and columns, for messages.

    Raises:
        InputError: S is not a matrix, or the mask has another shape or the direction t2i.
    """
    shape = require_matrix(S, sides)
    if not isinstance(mask, Mask):
        raise InputError(
            f"mask must be a lossscope.Mask; got {type(mask).__name__}. Write lossscope.Mask(match=..., "
            f"valid=...), both {shape} of bool; name embeddings, images=..., captions=..."
        )
    if S.shape != mask.match.shape:
        raise InputError(f"S and mask must have one shape; got {tuple(S.shape)} and {tuple(mask.match.shape)}")
    if mask.direction != "i2t":
        raise InputError(
            f"mask must be i2t, as S has {plural(sides.first)} as rows; got {mask.direction}. Give S.T and mask.t()"
        )
    return mask.to(S.device)


def require_matrix(S: Tensor, sides: Sides) -> str:
    """Return the names of rows and columns of S. Raises InputError unless S is a matrix of floating point."""
    shape = f"({plural(sides.first)}, {plural(sides.second or sides.first)})"
    if S.ndim != 2 or not S.is_floating_point():
        hint = "" if S.ndim != 2 else ". Write S.float()"
        raise InputError(f"S must be {shape} of floating point; got {tuple(S.shape)} of {S.dtype}{hint}")
    return shape


def require_places(rows: int, columns: int, offset: int | None) -> None:
    """Raise InputError unless row i of S can match column offset + i; offset None means pairs on the diagonal."""
    if offset is None:
        if rows == columns and rows < 2:
            raise InputError(
                f"a batch must have 2 pairs or more, as a single pair has no negative; got {rows}. To leave out a last "
                "short batch: DataLoader(..., drop_last=True)"
            )
        if rows != columns:
            raise InputError(
                f"S of pairs must be (b, b), pair i on the diagonal; got {(rows, columns)}. Say which entries match: "
                "offset=..., or a lossscope.Mask(match=..., valid=...)"
            )
    elif not 0 <= offset <= columns - rows:
        raise InputError(
            f"offset must be 0..{columns - rows}, as row i of S {(rows, columns)} matches column offset + i; "
            f"got {offset}"
        )


@lru_cache(maxsize=8)
def offset_mask(rows: int, columns: int, offset: int, device: torch.device, direction: Direction = "i2t") -> Mask:
    """Return the mask of pairs in which row i matches column offset + i, (rows, columns), every entry valid.

    Such an S has the queries of one process against the candidates of all processes, or queries whose mined negatives
    stand behind their positives (offset 0). Raises InputError if there are too few columns.

    >>> offset_mask(2, 5, 1, torch.device("cpu")).match.int().tolist()
    [[0, 1, 0, 0, 0], [0, 0, 1, 0, 0]]
    """
    require_places(rows, columns, offset)
    with torch.inference_mode(False):
        match = torch.zeros(rows, columns, dtype=torch.bool, device=device)
        match.diagonal(offset).fill_(True)
        mask = Mask(match, torch.ones_like(match), direction=direction)
        _ = (mask.negative_bias, mask.number_usable, mask.all_valid, mask.first_positive)
        _ = mask.first_row_with_two_positives
        return mask


def mined_mask(indices: Sequence[Tensor], n: int, m: int, device: torch.device) -> Mask:
    """Return the mask (n, m) of a miner's (anchor, positive, anchor, negative) pairs, or of its triplets.

    Raises InputError for anything else than three or four tensors of whole numbers.
    """
    parts = list(indices) if isinstance(indices, list | tuple) else []
    if len(parts) not in (3, 4) or not all(isinstance(x, Tensor) and not x.is_floating_point() for x in parts):
        raise InputError(
            "indices_tuple must be the (a, p, a, n) pairs or (a, p, n) triplets of a miner of pytorch-metric-learning; "
            f"got {type(indices).__name__} of {len(parts) or 'another kind'}"
        )
    a1, p, *rest = [index.to(device) for index in parts]
    a2, negative = (a1, rest[0]) if len(rest) == 1 else rest
    match, valid = (torch.zeros(n, m, dtype=torch.bool, device=device) for _ in range(2))
    match[a1, p] = True
    valid[a2, negative] = True
    return Mask(match, valid | match)
