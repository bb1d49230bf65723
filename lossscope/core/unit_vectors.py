"""Rows of unit length, from finite rows that are not zero."""

from __future__ import annotations

import torch
from torch import Tensor

from lossscope.errors import InputError

from .types import Rows

_BLOCK = 65536  # rows that are checked at a time
_SHORT, _LONG = 1e-12, 1e140  # lengths between which squares keep all digits, and torch's normalize its direction


def unit_rows(x: Tensor, what: str, tolerance: float = 1e-4, rows: Rows | None = None) -> tuple[Tensor, str | None]:
    """Return x with rows of unit length, and a notice if rows had to be normalised.

    Args:
        x: (n, d).
        what: name of x in messages.
        tolerance: rows whose length is within this of 1 stay as they are.
        rows: (n,) which rows of `what` these are; None: all.

    Raises:
        InputError: naming the first row with NaN or infinity, or the first row of zeros.
    """
    x = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    blocks = torch.split(x, _BLOCK)  # a memory-mapped file is never read as a whole
    bad = torch.cat([~torch.isfinite(block).all(1) for block in blocks])
    if bool(bad.any()):
        raise InputError(f"{what} must be finite; row {_first(bad, rows)} is not ({int(bad.sum())} such rows)")
    zero = torch.cat([~block.any(1) for block in blocks])
    if bool(zero.any()):
        raise InputError(f"{what} must not be zero; row {_first(zero, rows)} is")
    off = torch.cat([(block.norm(dim=1) - 1).abs() > tolerance for block in blocks])
    if not bool(off.any()):
        return x, None
    scaled = x.clone()
    for block, wrong in zip(torch.split(scaled, _BLOCK), torch.split(off, _BLOCK), strict=True):
        block[wrong] = _normalise_rows(block[wrong])
    count = f"all {len(x)}" if bool(off.all()) else f"{int(off.sum())} of {len(x)}"
    notice = f"{count} {what} were normalised to unit length"
    return scaled, notice


def moderate_rows(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return float64 rows (n, d) whose squares neither over- nor underflow, and the factors (n, 1) that give x again.

    Only very long and very short rows are divided by their largest entry; their factors are these entries, all others
    1. Rows that are not finite, and rows of zeros, stay as they are.
    """
    x = x.double()
    lengths = x.norm(dim=1, keepdim=True)
    largest = x.abs().amax(1, keepdim=True)
    is_extreme = ((lengths < _SHORT) | (lengths > _LONG)) & (largest > 0) & largest.isfinite()
    factors = torch.where(is_extreme, largest, 1.0)
    return (x / factors if bool(is_extreme.any()) else x), factors


def row_lengths(x: Tensor) -> Tensor:
    """|x| of each row, (n,) float64: infinite only where the length itself is above 1.8e308.

    >>> row_lengths(torch.tensor([[0, 8e200], [5e-320, 0]], dtype=torch.float64)).tolist()
    [8e+200, 5e-320]
    """
    lengths: Tensor = x.double().norm(dim=1)
    if bool(((lengths > _SHORT) & (lengths < _LONG)).all()):
        return lengths
    rows, factors = moderate_rows(x)
    exact: Tensor = rows.norm(dim=1) * factors[:, 0]
    return exact


def _first(wrong: Tensor, rows: Rows | None) -> int:
    """Return the row of the first that is wrong."""
    row = int(wrong.nonzero()[0])
    return row if rows is None else int(rows[row])


def _normalise_rows(rows: Tensor) -> Tensor:
    """x / |x| of nonzero rows, which are first divided by their largest entry: no square over- or underflows."""
    rows = rows / rows.abs().amax(1, keepdim=True)
    normalised: Tensor = rows / rows.norm(dim=1, keepdim=True)
    return normalised
