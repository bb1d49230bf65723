"""How did runs go? A line per epoch: loss, rsum, and similarities of positives and hardest negatives."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from lossscope.errors import NoRows
from lossscope.io.frames import require_columns
from lossscope.io.scores import score_column

from .base import Table
from .cells import Cell

COLUMNS = ("run", "epoch", "loss", "rsum", "pos_mean", "neg_mean")
_WARMUP = "warmup"  # optional column: the objective of an epoch in the warm-up
_HEADERS = (
    ("", "run"), ("", "epoch"), ("", "warm-up with"), ("", "loss"), ("", "rsum"),
    ("similarity of", "positive"), ("similarity of", "hardest negative"),
)  # fmt: skip
_CAPTION = (
    "Loss, mean over the steps of the epoch; {score} and mean similarities on the validation split. Epoch 0 is before "
    "training."
)
_WARMED = "Epochs of the warm-up trained with another loss: do not compare their losses with later epochs."


def build(frame: pd.DataFrame) -> Table:
    """Return a row per run and epoch.

    Args:
        frame: columns COLUMNS, as in `Run.epochs` and `lossscope trajectory --format csv`, and an optional `warmup`.

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
    digits = rows.groupby(["run", _WARMUP], sort=False)["loss"].transform(_digits).astype(int)
    body = tuple(
        _line(row, of_loss, score.digits) for row, of_loss in zip(rows.to_dict("records"), digits, strict=True)
    )
    notes = (_WARMED,) if (rows[_WARMUP] != "").any() else ()
    headers = tuple((group, score.name if name == "rsum" else name) for group, name in _HEADERS)
    return Table("trajectory", _CAPTION.format(score=score.name), headers, body, notes)


def _line(row: Mapping[Hashable, Any], digits: int, of_score: int) -> tuple[Cell, ...]:
    texts = [Cell(text=str(row[name])) for name in ("run", "epoch", _WARMUP)]
    decimals = {"loss": digits, "rsum": of_score, "pos_mean": 3, "neg_mean": 3}
    return (*texts, *(Cell(mean=float(row[name]), digits=number) for name, number in decimals.items()))


def _digits(losses: pd.Series[float]) -> int:
    """Return the decimals of the losses of a phase; larger losses take fewer."""
    largest = losses.abs().max()
    return 1 if largest >= 100 else 2 if largest >= 10 else 3
