"""Evaluations of a frozen model while another model trains: beside a loss, and in an evaluator's file."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd

from .base import Case, Floats, Size, curve, log


def _scores(size: Size, number: int) -> dict[str, Floats]:
    """Return correlations that rise."""
    rises = 1 - np.exp(-np.arange(1, number + 1.0))
    return {f"cosine_{name}": 0.7 * rises + 0.01 * size.rng.random(number) for name in ("pearson", "spearman")}


def beside_a_loss(size: Size, folder: Path) -> Case:
    start = math.log(size.batch)
    frozen = {f"eval_{name}": np.full(8, values[0]) for name, values in _scores(size, 8).items()}
    return Case(
        (), {"log": log(folder, validation=frozen, loss=curve(size, start, 0.2 * start)), "batch_size": size.batch}
    )


def _write(folder: Path, name: str, scores: dict[str, Floats]) -> str:
    number = len(next(iter(scores.values())))
    pd.DataFrame({"epoch": np.arange(number), "steps": -1, **scores}).to_csv(folder / name, index=False)
    return str(folder / name)


def evaluator(size: Size, folder: Path) -> Case:
    frozen = {name: np.full(5, values[0]) for name, values in _scores(size, 5).items()}
    return Case((), {"log": _write(folder, "similarity_evaluation_results.csv", frozen)})


def from_some_epoch_on(size: Size, folder: Path) -> Case:
    scores = {name: np.concatenate([values[:3], np.full(5, values[3])]) for name, values in _scores(size, 8).items()}
    return Case((), {"log": _write(folder, "similarity_evaluation_results.csv", scores)})


SICK = (beside_a_loss, evaluator, from_some_epoch_on)


def healthy(size: Size, folder: Path) -> Case:
    """Accuracy of 20 triplets, which has 21 values: it stays equal for a while."""
    scores = {"cosine_accuracy": np.array([14, 16, 17, 17, 17, 17, 18.0, 18]) / 20}
    return Case((), {"log": _write(folder, "triplet_evaluation_results.csv", scores)})
