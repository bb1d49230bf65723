"""What did a probe find? Every statistic of every objective, i2t beside t2i, for the terminal."""

from __future__ import annotations

import pandas as pd

from . import _summary
from ._summary import Column
from .base import Table

_COUNTS = ("C_B", "C_0", "skipped", "ties", "medr", "meanr")


def build(frame: pd.DataFrame, probe: str = "cocos") -> list[Table]:
    """Summary rows of one probe -> one table per family of objectives that have the same statistics."""
    rows = _summary.select(frame, probe, "statistics")
    families: dict[tuple[str, ...], list[str]] = {}
    for objective, part in rows.groupby("objective", sort=False, observed=True):
        families.setdefault(tuple(part["statistic"].unique()), []).append(str(objective))
    return [_table(rows[rows["objective"].isin(specs)], names, probe) for names, specs in families.items()]


def _table(rows: pd.DataFrame, statistics: tuple[str, ...], probe: str) -> Table:
    shown = [name for name in statistics if name != "skipped" or (rows["mean"][rows["statistic"] == name] > 0).any()]
    columns = [Column(side, (name,), digits=_digits(name)) for side in ("i2t", "t2i") for name in shown]
    caption = f"{probe}: " + _summary.settings(rows, "batches")
    notes = _summary.undefined(rows) if "C_q" in statistics else []
    return _summary.table(probe, caption, _summary.grouped(rows), columns, notes)


def _digits(name: str) -> int:
    return 1 if name in _COUNTS else 3 if name.startswith("W_") else 2
