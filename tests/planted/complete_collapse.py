"""All items have one embedding, except for noise."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from .base import Case, Floats, Size, aligned, pairs, unit


def _collapsed(size: Size, noise: float) -> tuple[Floats, Floats]:
    centre = unit(size.rng.normal(size=(1, size.d)))
    rngs = np.random.default_rng(size.seed + 7), np.random.default_rng(size.seed + 8)
    return tuple(unit(centre + noise / np.sqrt(size.d) * rng.normal(size=(size.n, size.d))) for rng in rngs)  # type: ignore[return-value]


def slightly(size: Size, folder: Path) -> Case:
    return Case((pairs(folder, *_collapsed(size, 0.1)),))


def hard(size: Size, folder: Path) -> Case:
    return Case((pairs(folder, *_collapsed(size, 1e-3)),))


def exactly(size: Size, folder: Path) -> Case:
    return Case((pairs(folder, *_collapsed(size, 0.0)),))


def with_objective(size: Size, folder: Path) -> Case:
    options = {"objective": "ntxent:tau=0.07", "batch_size": size.batch}
    return Case((pairs(folder, *_collapsed(size, 0.05)),), options)


def few_rows_of_a_trainer(size: Size, folder: Path) -> Case:
    """The rows that lossscope added to the history of a trainer, which logged four losses."""
    numbers = {"lossscope/q2d/s_pos": 0.996, "lossscope/q2d/s_neg": 0.997, "lossscope/q2d/C_neg": 31}
    rows = [{"step": step, "loss": 3.466, **numbers} for step in (10, 20, 30, 40)]
    path = folder / "trainer_state.json"
    path.write_text(json.dumps({"log_history": rows, "train_batch_size": 32}), encoding="utf-8")
    return Case((), {"log": str(path)})


def healthy(size: Size, folder: Path) -> Case:
    """A cone of mean cosine 0.97 that tells its items apart, as an untrained network does."""
    first, second = aligned(size)
    centre = unit(size.rng.normal(size=(1, size.d)))
    return Case((pairs(folder, unit(first + 6 * centre), unit(second + 6 * centre), "healthy.npz"),))


SICK = (slightly, hard, exactly, with_objective, few_rows_of_a_trainer)
