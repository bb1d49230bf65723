"""What did several probes find? A line per probe and statistic, columns per objective and direction."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from . import _summary
from ._summary import Row
from .base import Table
from .cells import Cell, decimals

OBJECTIVES = 3  # side by side in one table
_BY = ("source", "objective", "direction", "probe")
_APART = ("source", "sampling", "batch_size")
_DIRECTIONS = ("i2t", "t2i")


def build(frame: pd.DataFrame) -> list[Table]:
    """Summary rows of any probes -> for each source and way of batching: what weighs no objective, then the rest."""
    rows = _summary.complete(frame, "probes")
    found: list[Table] = []
    for _, part in rows.groupby(list(_APART), sort=False, dropna=False, observed=True):
        for kept in _parts(part):
            found.append(_table(kept, f"probes-{len(found) + 1}"))
    return found


def _parts(rows: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Rows of no objective, then those of a few objectives at a time."""
    free = rows["objective"].isna()
    if free.any():
        yield rows[free]
    specs = list(rows.loc[~free, "objective"].unique())
    for start in range(0, len(specs), OBJECTIVES):
        yield rows[rows["objective"].isin(specs[start : start + OBJECTIVES])]


def _table(rows: pd.DataFrame, name: str) -> Table:
    specs = [None] if rows["objective"].isna().all() else list(rows["objective"].unique())
    columns = [(spec, direction) for spec in specs for direction in _DIRECTIONS]
    heads = [("" if spec is None else str(spec), direction) for spec, direction in columns]
    rows = rows.assign(label=_labels(rows))
    lines = []
    for label, own in rows.groupby("label", sort=False, observed=True):
        for (statistic, unit), part in own.groupby(["statistic", "unit"], sort=False, observed=True):
            if statistic == "skipped" and not (part["mean"] > 0).any():
                continue
            cells = [_cell(part, spec, direction, str(unit)) for spec, direction in columns]
            lines.append((Cell(text=str(label)), Cell(text=str(statistic)), *cells, Cell(text=str(unit))))
    notes = (*_summary.undefined(rows),)
    return Table(name, _caption(rows), (("", "probe"), ("", "statistic"), *heads, ("", "unit")), tuple(lines), notes)


def _cell(rows: pd.DataFrame, spec: str | None, direction: str, unit: str) -> Cell:
    own = rows if spec is None else rows[rows["objective"] == spec]
    found = own[own["direction"] == direction]
    cell = Row({}, found).cell(_summary.Column(direction, tuple(found["statistic"].unique())))
    return Cell(mean=cell.mean, std=cell.std, digits=decimals(unit, cell.mean))


def _labels(rows: pd.DataFrame) -> list[str]:
    """The probe of each row, with eps and convention where it is there with several."""
    told = [column for column in ("convention", "eps") if rows.groupby("probe")[column].nunique().max() > 1]
    labels = []
    for _, row in rows.iterrows():
        more = [f"{column} {_summary.shown(row[column])}" for column in told if pd.notna(row[column])]
        labels.append(", ".join([str(row["probe"]), *more]))
    return labels


def _caption(rows: pd.DataFrame) -> str:
    """Settings in common; an eps or a convention is that of the probes which have one."""
    for column in ("convention", "eps"):
        values = rows[column].dropna().unique()
        if len(values) == 1:
            rows = rows.assign(**{column: values[0]})
    return _summary.settings(rows, "batches", _BY)
