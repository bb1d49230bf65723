"""Square windows of a grid of tokens: splitting, merging, and the positions inside them."""

from __future__ import annotations

import math

import torch
from torch import Tensor

_MASKED = -100.0  # as in the original; other implementations use −inf


def to_windows(grid: Tensor, window: int) -> Tensor:
    """(n, s, s, C) -> (n, windows, tokens of a window, C), row by row."""
    n, side, _, width = grid.shape
    count = side // window
    parts = grid.reshape(n, count, window, count, window, width).transpose(2, 3)
    return parts.reshape(n, count * count, window * window, width)


def to_grid(windows: Tensor, side: int) -> Tensor:
    """(n, windows, tokens of a window, C) -> (n, s, s, C): the inverse of `to_windows`."""
    n, windows_per_item, _, width = windows.shape
    count = math.isqrt(windows_per_item)
    window = side // count
    parts = windows.reshape(n, count, count, window, window, width).transpose(2, 3)
    return parts.reshape(n, side, side, width)


def relative_positions(window: int) -> Tensor:
    """(L, L) row of the bias table for token i seen from j: (Δrow + w − 1)(2 w − 1) + Δcolumn + w − 1."""
    index = torch.arange(window * window)
    row, column = index // window, index % window
    down, right = row[:, None] - row, column[:, None] - column
    return (down + window - 1) * (2 * window - 1) + right + window - 1


def shift_mask(side: int, window: int, shift: int) -> Tensor:
    """(windows, L, L) 0, or −100 between tokens of a shifted window that were not neighbours in the picture."""
    index = torch.arange(side)
    band = (index >= side - window).long() + (index >= side - shift).long()
    region = to_windows((3 * band[:, None] + band)[None, :, :, None], window)[0, :, :, 0]
    return (region[:, :, None] != region[:, None]) * _MASKED
