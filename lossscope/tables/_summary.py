"""How do summary rows become cells? One row per source, objective and setting; seeds are averaged."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from lossscope.errors import InputError, NoRows
from lossscope.io.frames import SUMMARY

from .base import Table
from .cells import DASH, Better, Cell, marked

COLUMNS = tuple(column for column in SUMMARY if column != "n_defined")
SETTINGS = ("convention", "eps", "batch_size", "sampling")
ABOVE_ZERO = " C_q: mean over queries with a count above zero."
_NAMES = {"batch_size": "batch size"}


@dataclass(frozen=True)
class Column:
    """A column of numbers: which statistic of which direction, how it is headed, printed and compared."""

    direction: str
    statistics: tuple[str, ...]  # the first that a row has is taken
    heading: str = ""
    digits: int = 2
    better: Better = None

    @property
    def header(self) -> tuple[str, str]:
        """(group, column)"""
        return ("" if self.direction == "both" else self.direction, self.heading or self.statistics[0])


@dataclass(frozen=True)
class Row:
    """The summary rows that one line of a table is made of, and what they have in common."""

    key: dict[str, str]
    rows: pd.DataFrame

    def cell(self, column: Column) -> Cell:
        """The number of a column: one measurement, or the mean and sample deviation over seeds."""
        found = self.found(column)
        means = found["mean"].dropna().astype(float)
        if means.empty:
            return Cell()
        std = means.std(ddof=1) if len(means) > 1 else _float(found.loc[means.index[0], "std"])
        return Cell(mean=float(means.mean()), std=_float(std), digits=column.digits)

    def found(self, column: Column) -> pd.DataFrame:
        """The rows behind a cell: of the first statistic that has a value, those without one included."""
        own = self.rows[self.rows["direction"] == column.direction]
        parts = (own[own["statistic"] == statistic] for statistic in column.statistics)
        return next((part for part in parts if part["mean"].notna().any()), own[:0])

    @property
    def seeds(self) -> int:
        """How many measurements of one statistic there are."""
        return int(self.rows.groupby(["statistic", "direction"], observed=True).size().max())


def complete(frame: pd.DataFrame, what: str) -> pd.DataFrame:
    """The rows of all probes, each once. Raises InputError naming missing columns, or when there is no row."""
    _require(frame)
    if frame.empty:
        raise NoRows(f"table {what} must have rows; got none. Run `lossscope probe`")
    return frame.drop_duplicates()


def whole_splits(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows that are of no batches: ranks within a batch are another, easier, thing than those of a split."""
    return frame if "batch_size" not in frame else frame[frame["batch_size"].isna()]


def select(frame: pd.DataFrame, probe: str, what: str) -> pd.DataFrame:
    """The rows of one probe.

    Raises InputError naming missing columns, or the command that makes such rows.
    """
    _require(frame)
    rows = frame[frame["probe"] == probe]
    if rows.empty:
        command = "eval" if probe == "recall" else probe
        raise NoRows(
            f"table {what} must have rows of the probe {probe!r}; got {listed(frame['probe'])}. "
            f"Run `lossscope {command}`"
        )
    return rows.drop_duplicates()


def _require(frame: pd.DataFrame) -> None:
    missing = [column for column in COLUMNS if column not in frame.columns]
    if missing:
        raise InputError(
            f"summary rows must have the columns {', '.join(COLUMNS)}; "
            f"got {', '.join(map(str, frame.columns))}. Add {', '.join(missing)}"
        )


def only(rows: pd.DataFrame, names: Sequence[str], what: str) -> pd.DataFrame:
    """The rows of some objectives, whatever their parameters. Raises InputError when there are none."""
    kept = rows[[name_of(spec) in names for spec in rows["objective"]]]
    if kept.empty:
        raise NoRows(
            f"table {what} must have rows of {' or '.join(names)}; got {listed(rows['objective'])}. "
            f"Run `lossscope cocos SOURCE --objective {names[0]}`"
        )
    return kept


def grouped(rows: pd.DataFrame, by: Sequence[str] = ("source", "objective")) -> list[Row]:
    """One Row per source, objective and setting that differs, in order of appearance."""
    keys = [*by, *varying(rows)]
    parts = rows.groupby(keys, sort=False, dropna=False, observed=True)
    return [Row({name: shown(v) for name, v in zip(keys, key, strict=True)}, part) for key, part in parts]


def varying(rows: pd.DataFrame) -> list[str]:
    """Which settings differ between rows, so that they need a column of their own?"""
    return [column for column in SETTINGS if rows[column].map(shown).unique().size > 1]


def table(name: str, caption: str, rows: list[Row], columns: Sequence[Column], notes: Sequence[str] = ()) -> Table:
    """Rows and columns -> Table; words first, columns that no row fills are left out."""
    several = len({row.key.get("source") for row in rows}) > 1
    keys = [key for key in rows[0].key if key != "source" or several]
    cells = [[row.cell(column) for column in columns] for row in rows]
    kept = [place for place in range(len(columns)) if any(not line[place].missing for line in cells)]
    words = [[Cell(text=row.key[key]) for key in keys] for row in rows]
    body = [line + [full[place] for place in kept] for line, full in zip(words, cells, strict=True)]
    better: list[Better] = [None] * len(keys)
    better += [columns[place].better for place in kept]
    heads = [("", _NAMES.get(key, key)) for key in keys] + [columns[place].header for place in kept]
    kept_columns = [columns[place] for place in kept]
    return Table(name, caption, tuple(heads), marked(body, better), (*notes, *_gaps(rows, kept_columns)))


def _gaps(rows: list[Row], columns: Sequence[Column]) -> list[str]:
    """A footnote on runs without a value, left out of a mean over several."""
    told = []
    for row, column in itertools.product(rows, columns):
        found = row.found(column)
        defined = found["mean"].notna().sum()
        if defined < len(found):
            told.append(f"{row.key.get('objective', DASH)} {' '.join(column.header).strip()} {defined} of {len(found)}")
    return [f"Runs in which a value is defined: {'; '.join(told)}. Others are left out of its mean."] if told else []


def settings(rows: pd.DataFrame, per: str, by: Sequence[str] = ("source", "objective")) -> str:
    """What must a caption say for its numbers to be believed?

    Settings in common, seeds, what the deviation is.
    """
    sources = rows["source"].map(shown).unique()
    parts = [f"source {sources[0]}"] if len(sources) == 1 else []
    for column in SETTINGS:
        values = rows[column].dropna().unique()
        if len(values) == 1 and column not in varying(rows):
            parts.append(f"{_NAMES.get(column, column)} {shown(values[0])}")
    seeds = [shown(seed) for seed in sorted(rows["seed"].dropna().unique())]
    parts += [f"seed{'s' if len(seeds) > 1 else ''} {', '.join(seeds)}"] if seeds else []
    return "; ".join([*parts, _deviation(rows, per, by)]) + "."


def undefined(rows: pd.DataFrame, statistic: str = "C_q") -> list[str]:
    """Footnotes on batches without a value of a statistic, left out of its mean (`n_defined` below `n`)."""
    if "n_defined" not in rows.columns:
        return []
    short = rows[(rows["statistic"] == statistic) & (rows["n_defined"] < rows["n"])]
    each = [
        f"{shown(row['objective'])} {shown(row['direction'])} {row['n_defined']:g} of {row['n']:g}"
        for _, row in short.iterrows()
    ]
    told = "; ".join(dict.fromkeys(each))
    return [f"Batches in which {statistic} is defined: {told}. Others are left out of its mean."] if each else []


def shown(value: object) -> str:
    """A key as printed: whole numbers without a point, nothing as a dash."""
    if value is None or value is pd.NA or (isinstance(value, float) and np.isnan(value)):
        return "–"
    return f"{value:g}" if isinstance(value, float | np.floating) else str(value)


def name_of(spec: object) -> str:
    """`triplet-sh:margin=0.2` -> `triplet_sh`."""
    return shown(spec).partition(":")[0].replace("-", "_")


def _deviation(rows: pd.DataFrame, per: str, by: Sequence[str]) -> str:
    sizes = sorted({row.seeds for row in grouped(rows, by)})
    counts = sorted({int(n) for n in rows.loc[rows["std"].notna(), "n"].dropna()})
    if sizes[-1] > 1:
        each = f", {_span(counts)} {per} each" if counts else ""
        alone = f" (of one run: population, over its {per})" if sizes[0] == 1 and counts else ""
        return f"mean ± sample standard deviation over n = {_span(sizes)} runs (seeds){alone}{each}"
    if not counts:
        return "one measurement"
    return f"mean ± population standard deviation over n = {_span(counts)} {per}"


def _span(numbers: Sequence[int]) -> str:
    return str(numbers[0]) if len(set(numbers)) == 1 else f"{numbers[0]} to {numbers[-1]}"


def _float(value: Any) -> float | None:
    return None if value is None or pd.isna(value) else float(value)


def listed(values: pd.Series[Any]) -> str:
    """The different values of a column, for a message."""
    return ", ".join(map(shown, values.unique())) or "no rows"
