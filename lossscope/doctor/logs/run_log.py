"""Read a run folder of `lossscope train`: trajectory.csv, metrics.csv and config.toml."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from lossscope.errors import InputError
from lossscope.io.column_types import require_types, types_of
from lossscope.io.csv_tables import read_csv
from lossscope.io.decode import read_toml
from lossscope.io.frames import require_columns
from lossscope.io.json_files import member
from lossscope.io.reading import show_path
from lossscope.io.run_folder import Run
from lossscope.io.scores import score_column

from .base import TrainingLog

_STEPS = {
    "loss": "loss",
    "lr": "lr",
    "grad_norm": "gradient_norm",
    "positive": "pos_mean",
    "hardest_negative": "neg_mean",
}
_PLACES = ("epoch", "step")
_NOT_SCORES = (*_PLACES, "seconds", "lr")


def read_run_log(path: Path) -> TrainingLog:
    """Read a run folder; `steps` has a further column `objective`, which marks the rows of a warm-up.

    Args:
        path: the folder. Evaluations are at the last step of their epoch, the one before training at step 0.

    Raises:
        InputError: a table is missing, damaged or empty, or config.toml is.
    """
    run = Run(path, writes=False)
    steps, ends, length = _read_steps(run)
    evaluations, names, scores = _read_evaluations(run, ends, length)
    columns = {field: name for field, name in _STEPS.items() if field in steps}
    objective, batch_size = _read_config(run)
    return TrainingLog(show_path(path), steps, evaluations, {**columns, **names}, objective, batch_size, scores=scores)


def _read_steps(run: Run) -> tuple[pd.DataFrame, dict[int, float], float]:
    """Return the rows of steps, the last step of each epoch, and the number of steps of an epoch."""
    rows = _read_table(run.trajectory, (*_PLACES, "loss"))
    epochs, within = rows["epoch"].to_numpy(dtype=np.float64), rows["step"].to_numpy(dtype=np.float64)
    length = float(within.max())
    running = (epochs - 1) * length + within
    named = {field: rows[name].astype(np.float64) for field, name in _STEPS.items() if name in rows}
    frame = pd.DataFrame({"step": running, **named})
    if "objective" in rows:
        frame["objective"] = rows["objective"]
    frame = frame.drop_duplicates("step", keep="last").sort_values("step", ignore_index=True)
    ends = {int(epoch): float(running[epochs == epoch].max()) for epoch in np.unique(epochs)}
    return frame, ends, length


def _read_evaluations(
    run: Run, ends: dict[int, float], length: float
) -> tuple[pd.DataFrame, dict[str, str], pd.DataFrame]:
    """Return a row for each epoch that was evaluated, name of the field -> name in metrics.csv, and all its scores."""
    if not run.metrics.is_file():
        return pd.DataFrame({"step": np.empty(0, np.float64)}), {}, pd.DataFrame()
    rows = _read_table(run.metrics, ("epoch",))
    recalls = [name for name in map(str, rows) if name.endswith(("_R@1", "_recall@1"))]
    score = score_column(rows.columns)[0]
    names = {"val_recall": score} if score in rows else {}
    names |= dict(zip(("val_recall_first", "val_recall_second"), recalls, strict=False))
    steps = [ends.get(int(epoch), epoch * length) for epoch in rows["epoch"]]
    frame = pd.DataFrame({field: rows[name].astype(np.float64) for field, name in names.items()})
    frame.insert(0, "step", np.array(steps, np.float64))
    scores = rows.select_dtypes("number").drop(columns=[name for name in _NOT_SCORES if name in rows])
    scores.insert(0, "step", frame["step"])
    return _in_order(frame), names, _in_order(scores)


def _in_order(frame: pd.DataFrame) -> pd.DataFrame:
    """Return rows by their steps, the last row of each step."""
    return frame.drop_duplicates("step", keep="last").sort_values("step", ignore_index=True)


def _read_table(path: Path, required: tuple[str, ...]) -> pd.DataFrame:
    """Return the rows of a table of a run that are whole. Raises InputError for a damaged or an empty one."""
    rows = read_csv(path, growing=True)
    require_columns(rows, required, show_path(path))
    if rows.empty:
        raise InputError(f"{show_path(path)} must have rows; it has none. Train for some steps")
    require_types(rows, types_of(rows.columns, {"objective"}), show_path(path))
    positions = rows[[name for name in required if name in _PLACES]]
    if bool((positions.isna() | ~np.isfinite(positions) | (positions % 1 != 0) | (positions < 0)).any(axis=None)):
        raise InputError(f"epochs and steps of {show_path(path)} must be whole numbers in every row; they are not")
    return rows


def _read_config(run: Run) -> tuple[str | None, int | None]:
    """Return the objective and the batch size of config.toml, where there is one."""
    if not run.config.is_file():
        return None, None
    config, name = read_toml(run.config), show_path(run.config)
    objective = member(config, "objective", str, name) if "objective" in config else None
    batch_size = member(config, "batch_size", int, name) if "batch_size" in config else None
    return objective, batch_size
