"""How did runs go? A line per epoch: loss, rsum, and similarities of positives and hardest negatives."""

from __future__ import annotations

from typing import Any

import pandas as pd

from lossscope.errors import NoRows
from lossscope.io.frames import require_columns
from lossscope.io.scores import score_column

from .base import Table
from .cells import Cell

COLUMNS = ("run", "epoch", "loss", "rsum", "pos_mean", "neg_mean")
_WARMUP = "warmup"  # optional column: the objective of an epoch in the warm-up
_VAL_LOSS = "val_loss"  # optional column: the loss on the validation split, which earlier versions did not compute
_HEADERS = {
    "run": ("", "run"), "epoch": ("", "epoch"), _WARMUP: ("", "warm-up with"), "loss": ("loss", "training"),
    _VAL_LOSS: ("loss", "validation"), "rsum": ("", "rsum"), "pos_mean": ("similarity of", "positive"),
    "neg_mean": ("similarity of", "hardest negative"),
}  # fmt: skip
_CAPTION = (
    "Training loss, mean over the steps of the epoch; {validated} on the validation split. Epoch 0 is before training."
)
_WARMED = "Epochs of the warm-up trained with another loss: do not compare their losses with later epochs."


def build(frame: pd.DataFrame) -> Table:
    """Return a row per run and epoch.

    Args:
        frame: columns COLUMNS, as in `Run.epochs` and `lossscope trajectory --format csv`, and optional `warmup` and
            `val_loss`.

    Raises:
        InputError: columns or rows are missing.
    """
    column, score = score_column(frame.columns)
    frame = frame.rename(columns={column: "rsum"})
    require_columns(frame, COLUMNS, "rows of epochs")
    if frame.empty:
        raise NoRows("table trajectory must have rows of epochs; got none. Run `lossscope trajectory --format csv`")
    warmup = frame[_WARMUP] if _WARMUP in frame else pd.Series(None, frame.index, dtype=object)
    rows = frame.assign(warmup=warmup.astype(object).where(warmup.notna(), ""))
    rows = rows.drop(columns=[_VAL_LOSS]) if _VAL_LOSS in rows and rows[_VAL_LOSS].isna().all() else rows
    digits = {"rsum": score.digits, "pos_mean": 3, "neg_mean": 3}
    decimals = rows.assign(loss=rows.groupby(["run", _WARMUP], sort=False)["loss"].transform(_digits), **digits)
    if _VAL_LOSS in rows:
        decimals[_VAL_LOSS] = rows.groupby("run", sort=False)[_VAL_LOSS].transform(_digits)
    columns = [name for name in _HEADERS if name in rows]
    body = tuple(
        tuple(_cell(name, row[name], of_row[name]) for name in columns)
        for row, of_row in zip(rows.to_dict("records"), decimals.to_dict("records"), strict=True)
    )
    notes = (_WARMED,) if (rows[_WARMUP] != "").any() else ()
    headers = tuple(("", score.name) if name == "rsum" else _HEADERS[name] for name in columns)
    loss = "loss of the run's own objective, " if _VAL_LOSS in rows else ""
    caption = _CAPTION.format(validated=f"{loss}{score.name} and mean similarities")
    return Table("trajectory", caption, headers, body, notes)


def _cell(name: str, value: Any, digits: Any) -> Cell:
    return Cell(text=str(value)) if name in ("run", "epoch", _WARMUP) else Cell(mean=float(value), digits=int(digits))


def _digits(losses: pd.Series[float]) -> int:
    """Return the decimals of the losses of a phase; larger losses take fewer."""
    largest = losses.abs().max()
    return 1 if largest >= 100 else 2 if largest >= 10 else 3
