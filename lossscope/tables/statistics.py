"""What did a probe find? A line per objective and direction, a column per statistic, for the terminal."""

from __future__ import annotations

import pandas as pd

from . import _summary
from ._summary import Column, Row
from .base import Cell, Table

_BY = ("source", "objective", "direction")
_COUNTS = ("C_B", "C_0", "skipped", "ties", "medr", "meanr")


def build(frame: pd.DataFrame, probe: str = "cocos") -> list[Table]:
    """Summary rows of one probe -> one table per family of objectives that have the same statistics."""
    rows = _summary.select(frame, probe, "statistics")
    families: dict[tuple[str, ...], list[str]] = {}
    for objective, part in rows.groupby("objective", sort=False, observed=True):
        families.setdefault(tuple(part["statistic"].unique()), []).append(str(objective))
    return [_table(rows[rows["objective"].isin(specs)], names, probe) for names, specs in families.items()]


def _table(rows: pd.DataFrame, statistics: tuple[str, ...], probe: str) -> Table:
    lines = _summary.grouped(rows, _BY)
    several = rows["source"].nunique() > 1
    keys = [key for key in lines[0].key if key != "source" or several]
    shown = [name for name in statistics if name != "skipped" or _any(rows, name)]
    cells = tuple((*(Cell(text=line.key[key]) for key in keys), *_cells(line, shown)) for line in lines)
    columns = tuple(("", key.replace("_", " ")) for key in keys) + tuple(("", name) for name in shown)
    caption = f"{probe}: " + _summary.settings(rows, "batches", _BY)
    return Table(probe, caption, columns, cells, tuple(_summary.undefined(rows)))


def _cells(line: Row, names: list[str]) -> list[Cell]:
    return [line.cell(Column(line.key["direction"], (name,), digits=_digits(name))) for name in names]


def _any(rows: pd.DataFrame, name: str) -> bool:
    return bool((rows.loc[rows["statistic"] == name, "mean"] > 0).any())


def _digits(name: str) -> int:
    return 1 if name in _COUNTS else 3 if name.startswith("W_") else 2
