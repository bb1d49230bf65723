"""Group summary rows into lines of a table: one per source, objective and setting, averaged over seeds."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from lossscope.errors import NoRows
from lossscope.io.frames import OPTIONAL, SUMMARY, in_folds, require_columns

from .base import Table
from .cells import DASH, Better, Cell, mark_best

COLUMNS = tuple(column for column in SUMMARY if column not in OPTIONAL)
SETTINGS = ("convention", "weight_unit", "eps", "batch_size", "sampling")
SETTING_NAMES = {"objective_label": "objective", "batch_size": "batch size", "weight_unit": "weight unit"}


@dataclass(frozen=True)
class Column:
    """A column of numbers."""

    direction: str  # i2t, t2i or both
    statistics: tuple[str, ...]  # the first of these that a row has
    heading: str = ""  # empty: the first statistic
    digits: int = 2  # decimals
    better: Better = None
    grouped: bool = True  # whether the column stands below its direction

    @property
    def header(self) -> tuple[str, str]:
        """(group, column)"""
        return (self.direction if self.grouped else "", self.heading or self.statistics[0])


@dataclass(frozen=True)
class Row:
    """The summary rows of a line of a table."""

    key: dict[str, str]  # shared values: source, objective and settings
    rows: pd.DataFrame

    def cell(self, column: Column) -> Cell:
        """Return the cell of a column: a single measurement, or mean and sample deviation over seeds."""
        rows = self.rows_of(column)
        means = rows["mean"].dropna().astype(float)
        if means.empty:
            return Cell()
        std = means.std(ddof=1) if len(means) > 1 else _deviation_of(rows.loc[means.index[0]])
        return Cell(mean=float(means.mean()), std=_float_or_none(std), digits=column.digits)

    def rows_of(self, column: Column) -> pd.DataFrame:
        """Return all rows of the first statistic of a column that has a value."""
        of_direction = self.rows[self.rows["direction"] == column.direction]
        parts = (of_direction[of_direction["statistic"] == statistic] for statistic in column.statistics)
        return next((part for part in parts if part["mean"].notna().any()), of_direction[:0])

    @property
    def seeds(self) -> int:
        """Largest number of measurements of a statistic."""
        return int(self.rows.groupby(["statistic", "direction"], observed=True).size().max())


def require_rows(frame: pd.DataFrame, table: str) -> pd.DataFrame:
    """Return the rows of all probes, each once. Raises InputError for missing columns, NoRows without rows."""
    require_columns(frame, COLUMNS, "summary rows")
    if frame.empty:
        raise NoRows(f"table {table} must have rows; got none. Run `lossscope probe`")
    return with_weight_unit(frame.drop_duplicates())


def with_weight_unit(frame: pd.DataFrame) -> pd.DataFrame:
    """Return rows with the column weight_unit; it is `paper` for weights of rows that do not state it."""
    counted = frame["eps"].notna()
    units = frame["weight_unit"] if "weight_unit" in frame else pd.Series(None, frame.index, dtype=object)
    return frame.assign(weight_unit=units.astype(object).where(units.notna() | ~counted, "paper"))


def whole_splits(frame: pd.DataFrame) -> pd.DataFrame:
    """Return rows of whole splits: a rank within a batch is a different, easier quantity than a rank within a split."""
    return frame if "batch_size" not in frame else frame[frame["batch_size"].isna()]


def select(frame: pd.DataFrame, probe: str, table: str) -> pd.DataFrame:
    """Return the rows of a probe. Raises InputError for missing columns, NoRows with the command that makes rows."""
    require_columns(frame, COLUMNS, "summary rows")
    rows = frame[frame["probe"] == probe]
    if rows.empty:
        raise no_rows(table, probe, frame)
    return with_weight_unit(rows.drop_duplicates())


def no_rows(table: str, probe: str, frame: pd.DataFrame, counted: str = "") -> NoRows:
    """Return the error of a table whose probe has no rows, with the command that makes rows.

    Args:
        table: its name.
        probe: the probe without rows.
        frame: all rows.
        counted: a condition on the rows: `, counted with the objective of the training`.
    """
    command = {"recall": "eval", "recall+judgements": "eval SOURCE --judgements FILE"}.get(probe, probe)
    return NoRows(
        f"table {table} must have rows of the probe {probe!r}{counted}; got {list_values(frame['probe'])}. "
        f"Run `lossscope {command}`"
    )


def select_objectives(rows: pd.DataFrame, names: Sequence[str], table: str) -> pd.DataFrame:
    """Return the rows of objectives with these names and any parameters. Raises NoRows without any."""
    selected = rows[[name_of(spec) in names for spec in rows["objective"]]]
    if selected.empty:
        raise NoRows(
            f"table {table} must have rows of {' or '.join(names)}; got {list_values(rows['objective'])}. "
            f"Run `lossscope cocos SOURCE --objective {names[0]}`"
        )
    return selected


def system_keys(rows: pd.DataFrame) -> tuple[str, ...]:
    """Return the columns that make a line: labels of systems if rows have them, else source and objective."""
    if "objective_label" not in rows:
        return "source", "objective"
    labels = ("data", "encoder", "objective_label")
    several = rows.groupby(list(labels), observed=True)["objective"].nunique().max() > 1
    return (*labels, "objective") if several else labels


def group_rows(rows: pd.DataFrame, by: Sequence[str] = ("source", "objective")) -> list[Row]:
    """Return a Row per source, objective and varying setting, in order of appearance."""
    keys = [*by, *varying_settings(rows)]
    parts = rows.groupby(keys, sort=False, dropna=False, observed=True)
    return [Row({name: format_value(v) for name, v in zip(keys, key, strict=True)}, part) for key, part in parts]


def directions(rows: pd.DataFrame, objective: object = None) -> list[str]:
    """Return the directions of an objective, or of all rows for None, in their order, `both` last."""
    of_objective = rows if objective is None else rows[rows["objective"] == objective]
    order = ["i2t", "t2i", *(label for label in rows["direction"].unique() if label not in ("i2t", "t2i", "both"))]
    return sorted(of_objective["direction"].unique(), key=[*order, "both"].index)


def varying_settings(rows: pd.DataFrame) -> list[str]:
    """Return the settings with several values, which need a column."""
    return [column for column in SETTINGS if rows[column].map(format_value).unique().size > 1]


def differing_settings(rows: pd.DataFrame) -> list[str]:
    """Return those of eps, convention and unit of weights that differ between rows of a probe, or are partly empty."""
    names = ("eps", "convention", "weight_unit")
    return [name for name in names if name in rows and rows[name].nunique(dropna=False) > 1]


def unit_text(rows: pd.DataFrame) -> str:
    """Return `; weight unit paper` if all weights share a unit; else an empty text."""
    units = list(rows["weight_unit"].dropna().unique()) if "weight_unit" in rows else []
    return f"; weight unit {units[0]}" if len(units) == 1 else ""


def build_table(
    name: str, caption: str, rows: list[Row], columns: Sequence[Column], notes: Sequence[str] = (), **texts: Any
) -> Table:
    """Return the table of rows and columns; keys come first, and columns without a number are left out.

    Args:
        name: of the table.
        caption: of the table.
        rows: its lines.
        columns: its numbers.
        notes: footnotes.
        texts: legend and meaning of the table.
    """
    several = len({row.key.get("source") for row in rows}) > 1
    keys = [key for key in rows[0].key if key != "source" or several]
    cells = [[row.cell(column) for column in columns] for row in rows]
    filled = [index for index in range(len(columns)) if any(not line[index].missing for line in cells)]
    first = [[Cell(text=row.key[key]) for key in keys] for row in rows]
    body = [labels + [line[index] for index in filled] for labels, line in zip(first, cells, strict=True)]
    of_folds = (bool(in_folds(row.rows).any()) for row in rows)
    blocks = [(row.key.get("data"), row.key.get("encoder"), apart) for row, apart in zip(rows, of_folds, strict=True)]
    better: list[Better] = [None] * len(keys)
    better += [columns[index].better for index in filled]
    names = {**SETTING_NAMES, "objective": "counted with" if "objective_label" in keys else "objective"}
    headers = [("", names.get(key, key)) for key in keys] + [columns[index].header for index in filled]
    filled_columns = [columns[index] for index in filled]
    footnotes = (*notes, *_undefined_runs_note(rows, filled_columns))
    return Table(name, caption, tuple(headers), mark_best(body, better, blocks), footnotes, **texts)


def _undefined_runs_note(rows: list[Row], columns: Sequence[Column]) -> list[str]:
    """Return a footnote on runs without a value, which means over several runs leave out."""
    each = []
    for row, column in itertools.product(rows, columns):
        of_column = row.rows_of(column)
        defined = of_column["mean"].notna().sum()
        if defined < len(of_column):
            label = row.key.get("objective", row.key.get("objective_label", DASH))
            each.append(f"{label} {' '.join(column.header).strip()} {defined} of {len(of_column)}")
    return [f"Runs with a defined value: {'; '.join(each)}. Its mean leaves out the others."] if each else []


def format_value(value: object) -> str:
    """Return a key as printed: whole numbers without a point, missing values as a dash."""
    if value is None or value is pd.NA or (isinstance(value, float) and np.isnan(value)):
        return "–"
    return f"{value:g}" if isinstance(value, float | np.floating) else str(value)


def name_of(spec: object) -> str:
    """`triplet-sh:margin=0.2` -> `triplet_sh`."""
    return format_value(spec).partition(":")[0].replace("-", "_")


def list_values(values: pd.Series[Any]) -> str:
    """Return the different values of a column, for a message."""
    return ", ".join(map(format_value, values.unique())) or "no rows"


def span(numbers: Sequence[int]) -> str:
    """Return `3`, or `2 to 5`, of sorted numbers."""
    return str(numbers[0]) if len(set(numbers)) == 1 else f"{numbers[0]} to {numbers[-1]}"


def _deviation_of(row: pd.Series[Any]) -> float | None:
    """Return the deviation of a measurement; None, not 0, for a single batch."""
    spread = row["n_spread"] if "n_spread" in row and pd.notna(row["n_spread"]) else row["n"]
    return _float_or_none(row["std"]) if spread > 1 else None


def _float_or_none(value: Any) -> float | None:
    return None if value is None or pd.isna(value) else float(value)
