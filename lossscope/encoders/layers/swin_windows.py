"""Square windows of a grid of tokens: cut, put back, and what lies where inside them."""

from __future__ import annotations

import math

import torch
from torch import Tensor

_APART = -100.0  # the original's, where others have −inf


def windows_of(grid: Tensor, window: int) -> Tensor:
    """(n, s, s, C) -> (n, windows, tokens of a window, C), row by row."""
    n, side, _, width = grid.shape
    count = side // window
    parts = grid.reshape(n, count, window, count, window, width).transpose(2, 3)
    return parts.reshape(n, count * count, window * window, width)


def grid_of(windows: Tensor, side: int) -> Tensor:
    """The grid whose `windows_of` these are."""
    n, number, _, width = windows.shape
    count = math.isqrt(number)
    window = side // count
    parts = windows.reshape(n, count, count, window, window, width).transpose(2, 3)
    return parts.reshape(n, side, side, width)


def offsets(window: int) -> Tensor:
    """(L, L) row of the bias table for token i seen from j: (Δrow + w − 1)(2 w − 1) + Δcolumn + w − 1."""
    place = torch.arange(window * window)
    row, column = place // window, place % window
    down, right = row[:, None] - row, column[:, None] - column
    return (down + window - 1) * (2 * window - 1) + right + window - 1


def apart(side: int, window: int, shift: int) -> Tensor:
    """(windows, L, L) 0, or −100 between tokens of a shifted window that were not neighbours in the picture."""
    place = torch.arange(side)
    band = (place >= side - window).long() + (place >= side - shift).long()
    region = windows_of((3 * band[:, None] + band)[None, :, :, None], window)[0, :, :, 0]
    return (region[:, :, None] != region[:, None]) * _APART
