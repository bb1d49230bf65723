"""How do the numbers of a run change over its epochs? A line per statistic, direction and epoch."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import pandas as pd

from lossscope.errors import InputError
from lossscope.io.frames import require_columns

from ._intervals import bracketed, percents
from ._legend import legend
from ._settings import used_rows
from ._summary import differing_settings, format_value, unit_text
from .base import Table
from .cells import Cell

REQUIRED = ("source", "objective", "direction", "probe", "statistic", "mean", "unit", "epoch", "low", "high", "level")


def build(frame: pd.DataFrame) -> list[Table]:
    """Return a table for each probe.

    Args:
        frame: rows of `lossscope diff RUN --epochs`.

    Raises:
        InputError: columns or rows are missing.
    """
    require_columns(frame, REQUIRED, "rows of epochs")
    if frame.empty:
        raise InputError("table epochs must have rows; got none")
    return [_table(rows, str(probe)) for probe, rows in frame.groupby("probe", sort=False, observed=True)]


def _table(rows: pd.DataFrame, probe: str) -> Table:
    level, several = percents(rows["level"]), differing_settings(rows)
    interval = (f"{level} interval",) if level else ()
    names = "objective", *several, "direction", "statistic", "epoch", "mean", *interval
    keys = ["objective", *several, "direction", "statistic"]
    body = tuple(
        _line(row, several, bool(level))
        for _, group in rows.groupby(keys, sort=False, dropna=False, observed=True)
        for row in group.sort_values("epoch").to_dict("records")
    )
    source = ", ".join([str(format_value(rows["source"].iloc[0])), *used_rows(rows)])
    caption = f"{probe}: {source} after each epoch, on the same batches{unit_text(rows)}."
    note = "Intervals: uncertainty of the test set, not of training; `--b-epoch` compares two epochs, paired."
    explained = legend((probe, str(name)) for name in rows["statistic"].unique())
    return Table(
        f"epochs_{probe}",
        caption,
        tuple(("", name.replace("_", " ")) for name in names),
        body,
        (note,) if level else (),
        explained,
    )


def _line(row: dict[Hashable, Any], several: Sequence[str], intervals: bool) -> tuple[Cell, ...]:
    digits = 3 if row["unit"] == "samples" else 4
    settings = (format_value(row[name]) for name in several)
    texts = (format_value(row["objective"]), *settings, str(row["direction"]), str(row["statistic"]))
    numbers = Cell(mean=float(row["epoch"]), digits=0), Cell(mean=float(row["mean"]), digits=digits)
    return (
        *(Cell(text=text) for text in texts),
        *numbers,
        *([Cell(text=bracketed(row["low"], row["high"], digits))] if intervals else []),
    )
