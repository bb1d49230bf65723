"""Passes over rows, (n, c), each by what is fastest on a CPU: mostly numpy, several times as fast as torch."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

LN2 = math.log(2)
_WIDE = 4096  # products that are added up in the precision of the rows


def exp_(x: Tensor, scale: float) -> Tensor:
    """exp(scale · x), in place; as powers of 2, which torch makes several times as fast on a CPU."""
    return x.mul_(scale / LN2).exp2_()


def dot(x: Tensor, y: Tensor) -> Tensor:
    """(n,) Σ x y of each row; y: (n, c) or (c,). Wide rows in pieces, which are added up in float64."""
    if x.shape[-1] > _WIDE:
        pieces = zip(torch.split(x, _WIDE, -1), torch.split(y, _WIDE, -1), strict=True)
        return torch.stack([dot(*piece).double() for piece in pieces]).sum(0).to(x.dtype)
    if x.device.type != "cpu":
        found: Tensor = torch.linalg.vecdot(x, y)
        return found
    return torch.from_numpy(np.vecdot(x.numpy(), y.numpy()))


def largest(x: Tensor, number: int) -> Tensor:
    """(n, number) largest entries of each row, in any order."""
    if x.device.type != "cpu":
        return x.topk(number, dim=1).values
    place = x.shape[1] - number
    # short rows: sorted whole is faster than parted
    found = np.sort(x.numpy(), axis=1) if x.shape[1] <= 256 else np.partition(x.numpy(), place, axis=1)
    return torch.from_numpy(found[:, place:])


def highest(x: Tensor) -> Tensor:
    """(n,) column of the largest entry of each row; of equals the first."""
    if x.device.type != "cpu":
        return x.argmax(1)
    return torch.from_numpy(x.numpy().argmax(1))


def in_order(x: Tensor) -> Tensor:
    """(n, c) entries of each row, the smallest first."""
    if x.device.type != "cpu":
        return x.sort(1).values
    return torch.from_numpy(np.sort(x.numpy(), axis=1))
