"""NaN rows, an infinite similarity, a row of zeros, a loss that becomes NaN."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from .base import Case, Size, aligned, curve, dump, healthy_dump, log, pairs


def nan_rows(size: Size, folder: Path) -> Case:
    first, second = aligned(size)
    second[3], second[-1, 0] = np.nan, np.inf
    return Case((pairs(folder, first, second),))


def all_nan(size: Size, folder: Path) -> Case:
    first, second = aligned(size)
    return Case((pairs(folder, first * np.nan, second * np.nan),))


def zero_row(size: Size, folder: Path) -> Case:
    first, second = aligned(size)
    first[7] = 0
    return Case((pairs(folder, first, second),))


def similarity(size: Size, folder: Path) -> Case:
    first, second = aligned(Size(min(size.n, 800), size.d, size.batch, size.seed))
    S = first @ second.T
    S[5, 9] = np.nan
    return Case((dump(folder, similarity=S, caption_image=np.arange(len(S))),))


def loss(size: Size, folder: Path) -> Case:
    values = curve(size, math.log(size.batch), 1.0)
    values[300:] = np.nan
    return Case((), {"log": log(folder, loss=values), "batch_size": size.batch})


SICK = (nan_rows, all_nan, zero_row, similarity, loss)
healthy = healthy_dump
