"""Assemble a TrainingLog from the rows of a file: choose columns, count steps through, each step once and in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from .base import EVALUATION_COLUMNS, STEP_COLUMNS, TrainingLog
from .empty_cells import with_nan_losses
from .evaluation_steps import average_directions, epochs_to_steps
from .find_columns import find_columns
from .log_table import Floats, LogTable
from .running_steps import running_steps, steps_of_evaluations
from .scales import as_scale, explain_negative
from .score_columns import Curve, latest, score_curves


def assemble_log(
    table: LogTable,
    columns: Mapping[str, str] | None = None,
    objective: str | None = None,
    batch_size: int | None = None,
    notices: Sequence[str] = (),
) -> TrainingLog:
    """Return the log of a table of rows.

    Args:
        table: rows of a file.
        columns: the choice of columns by the user, {"loss": "train/loss"}.
        objective: of the training, where the file names it.
        batch_size: pairs of a step, where the file has it.
        notices: earlier assumptions.

    Raises:
        InputError: neither a loss nor an evaluation, a choice that does not exist, or a cell that is no number.
    """
    names = find_columns(table.names, table.name, columns)
    remarks = list(notices)
    if "loss" in names:
        table, of_cells = with_nan_losses(table, names["loss"])
        steps, of_steps = running_steps(table, names.get("step"), names.get("epoch"))
        remarks += [*of_cells, *of_steps, *_explain_order(steps[table.cells[names["loss"]].rows], table.name)]
    else:
        steps, of_steps = steps_of_evaluations(table, names.get("step"), names.get("epoch"))
        remarks += [
            *of_steps,
            f"{table.name} has no training loss: its evaluations are read; --column loss=NAME names it",
        ]
    curves: dict[str, Curve] = {}
    for field in (*STEP_COLUMNS, *EVALUATION_COLUMNS):
        if field in names:
            column = table.column(names[field])
            curves[field] = latest(steps[column.rows], column.values)
    if "logit_scale" in curves:
        values, of_scale = as_scale(curves["logit_scale"][1], names["logit_scale"])
        curves["logit_scale"] = (curves["logit_scale"][0], values)
        remarks += of_scale
    remarks += explain_negative(names)
    trained = step_frame({field: curves[field] for field in STEP_COLUMNS if field in curves} if "loss" in names else {})
    evaluated = evaluation_frame({field: curves[field] for field in EVALUATION_COLUMNS if field in curves})
    evaluated, of_epochs = epochs_to_steps(evaluated, trained)
    scores, _ = epochs_to_steps(evaluation_frame(score_curves(table, steps, names)), trained)
    evaluated, of_directions = average_directions(evaluated)
    remarks += [*of_epochs, *of_directions]
    return TrainingLog(table.name, trained, evaluated, names, objective, batch_size, tuple(remarks), scores=scores)


def step_frame(curves: Mapping[str, Curve]) -> pd.DataFrame:
    """Return a row for each step that has a loss; a number logged between two losses goes to the earlier row.

    A NaN loss was logged as NaN; in other columns NaN may also mean that no number was logged.

    Args:
        curves: `loss` and other columns of training steps; empty: none has a loss.
    """
    if not curves:
        return pd.DataFrame({"step": np.empty(0, np.float64), "loss": np.empty(0, np.float64)})
    steps, losses = curves["loss"]
    frame = pd.DataFrame({"step": steps, "loss": losses})
    for field, (logged_at, values) in curves.items():
        if field != "loss":
            rows = (np.searchsorted(steps, logged_at, side="right") - 1).clip(0)
            placed = np.full(len(steps), np.nan)
            is_exact = steps[rows] == logged_at
            placed[rows[~is_exact]] = values[~is_exact]
            placed[rows[is_exact]] = values[is_exact]
            frame[field] = placed
    return frame


def evaluation_frame(curves: Mapping[str, Curve]) -> pd.DataFrame:
    """Return a row for each step with an evaluation."""
    columns = {field: pd.Series(values, index=steps) for field, (steps, values) in curves.items()}
    if not columns:
        return pd.DataFrame({"step": np.empty(0, np.float64)})
    return pd.DataFrame(columns).sort_index().rename_axis("step").reset_index()


def _explain_order(steps: Floats, name: str) -> Sequence[str]:
    """Return a notice where the steps of losses go back or repeat."""
    back = int((np.diff(steps) < 0).sum())
    twice = len(steps) - len(np.unique(steps))
    if back:
        return [f"{name} goes back to an earlier step {back} times, as a resumed training does: the later row counts"]
    return [f"{name} has {twice} steps with several losses: the last one counts"] if twice else []
