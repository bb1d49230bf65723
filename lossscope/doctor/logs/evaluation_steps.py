"""Place evaluations at steps of the training, with one number for both directions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

_DIRECTIONS = ["val_recall_first", "val_recall_second"]


def epochs_to_steps(evaluations: pd.DataFrame, steps: pd.DataFrame) -> tuple[pd.DataFrame, Sequence[str]]:
    """Return evaluations at steps where their trainer counts epochs, as open_clip does, and a notice.

    They are counted in epochs if their steps are 1, 2, 3, ..., or 0, 1, 2, ..., and the training has twice as many.

    Args:
        evaluations: with a column `step`.
        steps: of the training.
    """
    evaluated = evaluations["step"].to_numpy(dtype=np.float64)
    first = evaluated[0] if len(evaluated) else 0.0
    last, of_training = evaluated.max(initial=0.0), float(steps["step"].max())
    consecutive = np.array_equal(evaluated, np.arange(len(evaluated)) + first) and first in (0, 1) and last > 0
    if not consecutive or of_training < 2 * last or len(steps) < len(evaluated):
        return evaluations, ()
    notice = f"evaluations are at 1, 2, 3, ... while training has {of_training:g} steps: they are taken to be at epochs"
    return evaluations.assign(step=evaluated * of_training / last), (notice,)


def average_directions(evaluations: pd.DataFrame) -> tuple[pd.DataFrame, Sequence[str]]:
    """Return evaluations with val_recall, the mean of both directions where the log has none, and a notice."""
    if "val_recall" in evaluations or not {*_DIRECTIONS} <= {*evaluations.columns}:
        return evaluations, ()
    mean = (evaluations[_DIRECTIONS[0]] + evaluations[_DIRECTIONS[1]]) / 2
    position = evaluations.columns.get_loc(_DIRECTIONS[0])
    filled = evaluations.copy()
    filled.insert(int(str(position)), "val_recall", mean)
    return filled, ("val_recall is the mean of both directions",)
