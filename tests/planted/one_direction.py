"""A direction that fails: one candidate wins every query of it; recalls of a log."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from .base import Case, Size, aligned, curve, dump, healthy_log, log


def offsets(size: Size, folder: Path) -> Case:
    """A bias of every candidate: rows rank by it, columns do not see it."""
    first, second = aligned(Size(min(size.n, 900), size.d, size.batch, size.seed), noise=0.3)
    S = 0.2 * (first @ second.T) + size.rng.uniform(-0.7, 0.7, len(first))[None, :]
    return Case((dump(folder, similarity=S, caption_image=np.arange(len(S))),))


def recalls(size: Size, folder: Path) -> Case:
    start = math.log(size.batch)
    validation = {"val_i2t_R@1": np.linspace(1, 40, 8), "val_t2i_R@1": np.full(8, 0.1)}
    return Case(
        (), {"log": log(folder, validation=validation, loss=curve(size, start, 0.4 * start)), "batch_size": size.batch}
    )


SICK = (offsets, recalls)
healthy = healthy_log
