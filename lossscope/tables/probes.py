"""What are the statistics of several probes? A line per probe and statistic, columns per objective and direction."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from . import _settings, _summary
from ._intervals import has_intervals, interval_cell, interval_sentence, sample_note
from ._legend import legend
from ._meaning import meaning
from ._summary import Row
from .base import Table
from .cells import Cell, decimals

OBJECTIVES = 3  # objectives side by side in a table, at most
_BY = ("source", "objective", "direction", "probe")
_TABLE = ("source", "sampling", "batch_size")  # each combination has tables of its own


def build(frame: pd.DataFrame) -> list[Table]:
    """Return tables for each source and kind of batches: first probes that need no objective, then the others.

    Args:
        frame: summary rows of any probes.

    Raises:
        InputError: columns or rows are missing.
    """
    rows = _summary.require_rows(frame, "probes")
    tables: list[Table] = []
    for _, part in rows.groupby(list(_TABLE), sort=False, dropna=False, observed=True):
        for table_rows in _parts(part):
            tables.append(_table(table_rows, f"probes-{len(tables) + 1}"))
    return tables


def _parts(rows: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Yield the rows without an objective, then the rows of a few objectives at a time."""
    without = rows["objective"].isna()
    if without.any():
        yield rows[without]
    specs = list(rows.loc[~without, "objective"].unique())
    for start in range(0, len(specs), OBJECTIVES):
        yield rows[rows["objective"].isin(specs[start : start + OBJECTIVES])]


def _table(rows: pd.DataFrame, name: str) -> Table:
    specs = [None] if rows["objective"].isna().all() else list(rows["objective"].unique())
    columns = [(spec, direction) for spec in specs for direction in _summary.directions(rows, spec)]
    intervals = has_intervals(rows)
    headings = [
        ("" if spec is None else str(spec), heading)
        for spec, direction in columns
        for heading in (direction, *([f"{direction} interval"] if intervals else []))
    ]
    rows = rows.assign(label=_labels(rows))
    lines = []
    for label, labelled in rows.groupby("label", sort=False, observed=True):
        for (statistic, unit), part in labelled.groupby(["statistic", "unit"], sort=False, observed=True):
            if statistic == "skipped" and not (part["mean"] > 0).any():
                continue
            cells = [
                cell for spec, direction in columns for cell in _cells(part, spec, direction, str(unit), intervals)
            ]
            lines.append((Cell(text=str(label)), Cell(text=str(statistic)), Cell(text=str(unit)), *cells))
    columns_of_table = (("", "probe"), ("", "statistic"), ("", "unit"), *headings)
    shown = {str(line[1].text) for line in lines}
    explained = legend(
        (str(probe), str(statistic))
        for probe, statistic in zip(rows["probe"], rows["statistic"], strict=True)
        if statistic in shown
    )
    hidden = ("probe",) if rows["label"].nunique() == 1 else ()
    notes = (*_settings.undefined_note(rows), *sample_note(rows))
    return Table(name, _caption(rows), columns_of_table, tuple(lines), notes, explained, meaning(rows), hidden)


def _cells(rows: pd.DataFrame, spec: str | None, direction: str, unit: str, intervals: bool) -> list[Cell]:
    """Return the number of an objective and direction, and its interval if the table has intervals."""
    of_objective = rows if spec is None else rows[rows["objective"] == spec]
    of_direction = of_objective[of_objective["direction"] == direction]
    cell = Row({}, of_direction).cell(_summary.Column(direction, tuple(of_direction["statistic"].unique())))
    digits = decimals(unit, cell.mean)
    number = Cell(mean=cell.mean, std=cell.std, digits=digits)
    return [number, interval_cell(of_direction, digits)] if intervals else [number]


def _labels(rows: pd.DataFrame) -> list[str]:
    """Return the probe of each row, with eps, convention and unit of weights if a probe has several."""
    differing = [
        column for column in ("convention", "weight_unit", "eps") if rows.groupby("probe")[column].nunique().max() > 1
    ]
    labels, names = [], _summary.SETTING_NAMES
    for _, row in rows.iterrows():
        more = [
            f"{names.get(column, column)} {_summary.format_value(row[column])}"
            for column in differing
            if pd.notna(row[column])
        ]
        labels.append(", ".join([str(row["probe"]), *more]))
    return labels


def _caption(rows: pd.DataFrame) -> str:
    """Return the shared settings; probes without eps, convention or unit do not count."""
    for column in ("convention", "weight_unit", "eps"):
        values = rows[column].dropna().unique()
        if len(values) == 1:
            rows = rows.assign(**{column: values[0]})
    names = rows["probe"].unique()
    caption = f"{', '.join(names) if len(names) <= 3 else 'Probes'}: {_settings.settings(rows, 'batches', _BY)}"
    return f"{caption} {interval_sentence(rows)}".rstrip()
