"""What are the statistics of a probe? A line per objective and direction, a column per statistic."""

from __future__ import annotations

import pandas as pd

from . import _settings, _summary
from ._intervals import cell_of_line, interval_sentence, sample_note
from ._legend import legend
from ._meaning import meaning
from ._summary import Column, Row
from .base import Table
from .cells import Cell, decimals

_BY = ("source", "objective", "direction")


def build(frame: pd.DataFrame, probe: str = "cocos") -> list[Table]:
    """Return a table per family of objectives with the same statistics, and a table of their intervals, if any.

    Lines are directions if the probe needs no objective.

    Args:
        frame: summary rows.
        probe: name of the probe.

    Raises:
        NoRows: the probe has no rows.
    """
    rows = _summary.select(frame, probe, "statistics")
    families: dict[tuple[str, ...], list[pd.DataFrame]] = {}
    for _, part in rows.groupby("objective", sort=False, dropna=False, observed=True):
        families.setdefault(tuple(part["statistic"].unique()), []).append(part)
    tables: list[Table] = []
    for names, parts in families.items():
        tables += _tables(pd.concat(parts).sort_index(), names, probe)
    return tables


def _tables(rows: pd.DataFrame, statistics: tuple[str, ...], probe: str) -> list[Table]:
    """Return a table of the numbers of a family, and a table of their intervals, if any, with the same layout."""
    lines = _by_objective(_summary.group_rows(rows, _BY))
    hidden = {"source"} if rows["source"].nunique() == 1 else set[str]()
    hidden |= {"objective"} if rows["objective"].isna().all() else set()
    keys = [key for key in lines[0].key if key not in hidden]
    names = [name for name in statistics if name != "skipped" or _has_positive(rows, name)]
    columns = tuple(("", key.replace("_", " ")) for key in keys) + tuple(("", name) for name in names)
    numbers, intervals = [], []
    for line in lines:
        direction, digits = line.key["direction"], _digits_of(line, rows, names)
        labels = [Cell(text=line.key[key]) for key in keys]
        numbers.append((*labels, *(line.cell(Column(direction, (name,), digits=digits[name])) for name in names)))
        intervals.append((*labels, *(cell_of_line(line, direction, name, digits[name]) for name in names)))
    caption = f"{probe}: " + _settings.settings(rows, "batches", _BY)
    notes = (*_settings.undefined_note(rows), *sample_note(rows))
    explained = legend((probe, name) for name in names)
    table = Table(probe, caption, columns, tuple(numbers), notes, explained, meaning(rows))
    if all(cell.missing for row in intervals for cell in row[len(keys) :]):
        return [table]
    of_intervals = f"{probe}, {interval_sentence(rows)}"
    return [table, Table(f"{probe}-intervals", of_intervals, columns, tuple(intervals))]


def _by_objective(lines: list[Row]) -> list[Row]:
    """Put the directions of an objective together; objectives stay in order of appearance."""
    first: dict[tuple[str, str], int] = {}
    for line in lines:
        first.setdefault((line.key["source"], line.key["objective"]), len(first))
    return sorted(lines, key=lambda line: first[line.key["source"], line.key["objective"]])


def _digits_of(line: Row, rows: pd.DataFrame, names: list[str]) -> dict[str, int]:
    """Return the decimals of each statistic of the line's objective: scales of objectives differ."""
    objective = line.rows["objective"].iloc[0]
    of_objective = rows if pd.isna(objective) else rows[rows["objective"] == objective]
    return {name: _digits(of_objective[of_objective["statistic"] == name]) for name in names}


def _has_positive(rows: pd.DataFrame, name: str) -> bool:
    return bool((rows.loc[rows["statistic"] == name, "mean"] > 0).any())


def _digits(rows: pd.DataFrame) -> int:
    """Return the decimals of a statistic from its unit and its largest number."""
    if rows.empty or rows["statistic"].iloc[0] == "C_B":
        return 1
    return decimals(str(rows["unit"].iloc[0]), rows["mean"].abs().max())
