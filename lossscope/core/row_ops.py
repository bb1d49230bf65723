"""Row-wise operations on matrices (n, c), each in its fastest form on a CPU: numpy is often several times as fast."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

LN2 = math.log(2)
_WIDE = 4096  # products that are added up in the precision of the rows


def exp_(x: Tensor, scale: float) -> Tensor:
    """exp(scale · x), in place; computed as powers of 2, which torch makes several times as fast on a CPU."""
    return x.mul_(scale / LN2).exp2_()


def row_dot(x: Tensor, y: Tensor) -> Tensor:
    """(n,) Σ x y of each row, y being (n, c) or (c,); pieces of wide rows are added up in float64."""
    if x.shape[-1] > _WIDE:
        pieces = zip(torch.split(x, _WIDE, -1), torch.split(y, _WIDE, -1), strict=True)
        return torch.stack([row_dot(*piece).double() for piece in pieces]).sum(0).to(x.dtype)
    if x.device.type != "cpu":
        products: Tensor = torch.linalg.vecdot(x, y)
        return products
    return torch.from_numpy(np.vecdot(x.numpy(), y.numpy()))


def row_top_k(x: Tensor, k: int, work: Tensor) -> Tensor:
    """Return the k largest entries of each row, (n, k), in any order.

    Args:
        x: (n, c).
        k: number of entries.
        work: memory of the shape of x, which is overwritten on a CPU.
    """
    if x.device.type != "cpu":
        return x.topk(k, dim=1).values
    first, rows = x.shape[1] - k, work.copy_(x).numpy()
    if x.shape[1] <= 256:  # for short rows a full sort is faster than a partition
        rows.sort(axis=1)
    else:
        rows.partition(first, axis=1)
    return work[:, first:]


def row_argmax(x: Tensor) -> Tensor:
    """Return the column of the largest entry of each row, (n,); the first one if several are equal."""
    if x.device.type != "cpu":
        return x.argmax(1)
    return torch.from_numpy(x.numpy().argmax(1))


def sort_rows(x: Tensor) -> Tensor:
    """Return the entries of each row in ascending order, (n, c)."""
    if x.device.type != "cpu":
        return x.sort(1).values
    return torch.from_numpy(np.sort(x.numpy(), axis=1))
