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
    """Return one table per family of objectives that have the same statistics; below it their intervals, if any.

    Lines are directions where the probe needs no objective.

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
        own = pd.concat(parts).sort_index()
        tables += [_table(own, names, probe), *_interval_table(own, names, probe)]
    return tables


def _table(rows: pd.DataFrame, statistics: tuple[str, ...], probe: str) -> Table:
    lines, keys, names = _layout(rows, statistics)
    cells = tuple((*(Cell(text=line.key[key]) for key in keys), *_cells(line, rows, names)) for line in lines)
    columns = _columns(keys, names)
    caption = f"{probe}: " + _settings.settings(rows, "batches", _BY)
    explained = legend((probe, name) for name in names)
    return Table(
        probe, caption, columns, cells, (*_settings.undefined_note(rows), *sample_note(rows)), explained, meaning(rows)
    )


def _interval_table(rows: pd.DataFrame, statistics: tuple[str, ...], probe: str) -> list[Table]:
    """Return the intervals as a table of the same lines and columns; none where no number has one."""
    lines, keys, names = _layout(rows, statistics)
    body = [_interval_cells(line, rows, names) for line in lines]
    if all(cell.missing for cells in body for cell in cells):
        return []
    cells = tuple((*(Cell(text=line.key[key]) for key in keys), *own) for line, own in zip(lines, body, strict=True))
    caption = f"{probe}, {interval_sentence(rows)}"
    return [Table(f"{probe}-intervals", caption, _columns(keys, names), cells)]


def _layout(rows: pd.DataFrame, statistics: tuple[str, ...]) -> tuple[list[Row], list[str], list[str]]:
    """Return the lines, the keys that have a column, and the statistics."""
    lines = _by_objective(_summary.group_rows(rows, _BY))
    hidden = {"source"} if rows["source"].nunique() == 1 else set[str]()
    hidden |= {"objective"} if rows["objective"].isna().all() else set()
    keys = [key for key in lines[0].key if key not in hidden]
    return lines, keys, [name for name in statistics if name != "skipped" or _has_positive(rows, name)]


def _columns(keys: list[str], names: list[str]) -> tuple[tuple[str, str], ...]:
    return tuple(("", key.replace("_", " ")) for key in keys) + tuple(("", name) for name in names)


def _by_objective(lines: list[Row]) -> list[Row]:
    """Sort the directions of an objective together, objectives in order of appearance."""
    first: dict[tuple[str, str], int] = {}
    for line in lines:
        first.setdefault((line.key["source"], line.key["objective"]), len(first))
    return sorted(lines, key=lambda line: first[line.key["source"], line.key["objective"]])


def _cells(line: Row, rows: pd.DataFrame, names: list[str]) -> list[Cell]:
    """Return the numbers of a line, with the decimals of its objective: scales of objectives differ."""
    digits = _digits_of(line, rows, names)
    return [line.cell(Column(line.key["direction"], (name,), digits=digits[name])) for name in names]


def _interval_cells(line: Row, rows: pd.DataFrame, names: list[str]) -> list[Cell]:
    digits = _digits_of(line, rows, names)
    return [cell_of_line(line, line.key["direction"], name, digits[name]) for name in names]


def _digits_of(line: Row, rows: pd.DataFrame, names: list[str]) -> dict[str, int]:
    objective = line.rows["objective"].iloc[0]
    own = rows if pd.isna(objective) else rows[rows["objective"] == objective]
    return {name: _digits(own[own["statistic"] == name]) for name in names}


def _has_positive(rows: pd.DataFrame, name: str) -> bool:
    return bool((rows.loc[rows["statistic"] == name, "mean"] > 0).any())


def _digits(rows: pd.DataFrame) -> int:
    """Return the decimals of a statistic: those of its unit and its largest number."""
    if rows.empty or rows["statistic"].iloc[0] == "C_B":
        return 1
    return decimals(str(rows["unit"].iloc[0]), rows["mean"].abs().max())
