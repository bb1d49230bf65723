"""Similarities that were scaled already."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .base import Case, Size, aligned, dump


def _matrix(size: Size, folder: Path, scale: float, name: str) -> Case:
    first, second = aligned(Size(min(size.n, 800), size.d, size.batch, size.seed))
    S = scale * (first @ second.T)
    path = dump(folder, name, similarity=S, caption_image=np.arange(len(S)))
    return Case((path,), {"objective": "ntxent:tau=0.05", "batch_size": size.batch})


def by_tau(size: Size, folder: Path) -> Case:
    return _matrix(size, folder, 1 / 0.05, "dump.npz")


def logits(size: Size, folder: Path) -> Case:
    return _matrix(size, folder, 100.0, "dump.npz")


SICK = (by_tau, logits)


def healthy(size: Size, folder: Path) -> Case:
    """Cosines."""
    return _matrix(size, folder, 1.0, "healthy.npz")
