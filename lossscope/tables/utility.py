"""What is one step with each loss worth? The change of a held-out split, and that change per counted negative."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import pandas as pd

from lossscope.errors import InputError
from lossscope.io.frames import require_columns

from ._intervals import percents
from .base import Table
from .cells import Cell

REQUIRED = (
    "source", "objective", "baseline", "direction", "metric", "unit", "before", "change", "low", "high", "difference",
    "difference_low", "difference_high", "per_counted", "per_counted_low", "per_counted_high", "per_query", "counted",
    "queries_with_weight", "queries", "no_gradient", "n", "n_defined", "linearity", "level", "step", "batch_size",
    "sampling", "split", "held_out", "held_out_items", "eps", "weight_unit", "seed",
)  # fmt: skip
_BOTH, _MARGIN = "both", "margin"
_IN_PROPORTION = (0.8, 1.25)  # linearity within which a step is short enough to compare losses by
_MOST_DIGITS = 8


def build(frame: pd.DataFrame) -> list[Table]:
    """Return a table of changes, and a table of what they come from; means of both directions.

    Args:
        frame: summary of `lossscope analyse utility`, with `both` among its directions.

    Raises:
        InputError: columns or rows are missing.
    """
    require_columns(frame, REQUIRED, "rows of utility")
    rows = frame[frame["direction"] == _BOTH]
    if rows.empty:
        raise InputError(
            "table utility must have rows of the direction both; got none. Run `lossscope analyse utility`"
        )
    sources = rows["source"].nunique() > 1
    order = list(rows["metric"].unique())
    rows = rows.sort_values("metric", key=lambda metric: metric.map(order.index), kind="stable")
    return [_changes(rows, sources), _per_counted(rows, sources)]


def _changes(rows: pd.DataFrame, sources: bool) -> Table:
    level = percents(rows["level"])
    several = bool(rows["baseline"].notna().any())
    columns = [*_labels(sources), ("", "before"), ("change", "mean"), *_interval(level, "change")]
    if several:
        columns += [("difference", "mean"), *_interval(level, "difference")]
    lines = []
    for row, digits in _with_digits(rows, "change", "low", "high"):
        line = [*_names(row, sources), Cell(mean=row["before"], digits=digits), Cell(mean=row["change"], digits=digits)]
        line += _ends(row, ("low", "high"), digits, level)
        if several:
            line.append(Cell(mean=row["difference"], digits=digits))
            line += _ends(row, ("difference_low", "difference_high"), digits, level)
        lines.append(tuple(line))
    legend = (
        "margin: mean over queries of s₊ − s₋, best positive less hardest negative of the whole split",
        "R@1, rsum: in per cent",
        "nDCG: of the whole ranking",
        *(f"difference: change − change of {name}, batch by batch" for name in rows["baseline"].dropna().unique()),
    )
    return Table("utility", _caption(rows), tuple(columns), tuple(lines), tuple(_notes(rows)), legend)


def _per_counted(rows: pd.DataFrame, sources: bool) -> Table:
    level = percents(rows["level"])
    columns = [
        *_labels(sources), ("", "C_neg"), ("per C_neg", "mean"), *_interval(level, "per C_neg"),
        ("", "queries with weight"), ("", "per query with weight"), ("", "no gradient"),
    ]  # fmt: skip
    lines = []
    for row, digits in _with_digits(rows, "per_counted", "per_counted_low", "per_counted_high"):
        share = f"{row['queries_with_weight']:.4g} of {row['queries']:.4g}"
        lines.append((
            *_names(row, sources), Cell(mean=row["counted"], digits=2),
            Cell(mean=row["per_counted"], digits=digits),
            *_ends(row, ("per_counted_low", "per_counted_high"), digits, level), Cell(text=share),
            Cell(mean=row["per_query"], digits=_digits(row["per_query"])),
            Cell(text=f"{int(row['no_gradient'])} of {int(row['n'])}"),
        ))  # fmt: skip
    first = rows.iloc[0]
    legend = (
        f"C_neg: negatives per query with weight above eps {first['eps']:g}, weight unit {first['weight_unit']}",
        "per C_neg: change / C_neg, batch by batch",
        "per query with weight: change / queries whose W is not all 0",
        "no gradient: batches in which the loss has none; their change is 0",
    )
    caption = "Change of the same steps per counted negative of a query and per query with weight; mean over batches."
    return Table("utility-counted", caption, tuple(columns), tuple(lines), tuple(_undefined(rows)), legend)


def _caption(rows: pd.DataFrame) -> str:
    row = rows.iloc[0]
    of = "" if rows["source"].nunique() > 1 else f"source {row['source']}; "
    level = percents(rows["level"])
    interval = f"; {level} t intervals over batches, not over items or seeds" if level else ""
    return (
        f"Utility of one step: change of split {row['held_out']} ({row['held_out_items']}), on which no step is taken, "
        f"after one step of relative length {row['step']:g} on each of n = {int(row['n'])} batches of split "
        f"{row['split']}; {of}batch size {int(row['batch_size'])}, sampling {row['sampling']}, seed "
        f"{int(row['seed'])}; model in eval mode; mean of both directions{interval}."
    )


def _notes(rows: pd.DataFrame) -> list[str]:
    """Return how nearly the utility is in proportion to the length of the step, and what to do where it is not."""
    margins = rows[(rows["metric"] == _MARGIN) & rows["linearity"].notna()]
    if margins.empty:
        return []
    low, high = float(margins["linearity"].min()), float(margins["linearity"].max())
    span = f"{low:.2f}" if f"{low:.2f}" == f"{high:.2f}" else f"{low:.2f} to {high:.2f}"
    note = (
        "Proportion: a whole step changes the margin by "
        f"{span} of twice the change of half a step (first batches); 1 is in proportion to the length."
    )
    if not _IN_PROPORTION[0] <= low <= high <= _IN_PROPORTION[1]:
        note += f" This step is too long to be read as a rate: use a smaller --step than {rows['step'].iloc[0]:g}."
    return [note]


def _undefined(rows: pd.DataFrame) -> list[str]:
    """Return which losses have batches without a counted negative, whose ratio is not defined."""
    lacking = rows[rows["n_defined"] < rows["n"]].drop_duplicates(["source", "objective"])
    each = [
        f"{row['objective']}: {int(row['n'] - row['n_defined'])} of {int(row['n'])}" for _, row in lacking.iterrows()
    ]
    if not each:
        return []
    return [f"Batches without a counted negative, left out of change / C_neg, which is 0 / 0: {'; '.join(each)}."]


def _labels(sources: bool) -> list[tuple[str, str]]:
    return [("", name) for name in (*(["source"] if sources else []), "metric", "objective")]


def _names(row: dict[Hashable, Any], sources: bool) -> list[Cell]:
    return [Cell(text=str(row[name])) for name in (*(["source"] if sources else []), "metric", "objective")]


def _interval(level: str, of: str = "") -> list[tuple[str, str]]:
    return [(of, f"{level} interval")] if level else []


def _ends(row: dict[Hashable, Any], names: tuple[str, str], digits: int, level: str) -> list[Cell]:
    """Return the cell of an interval; none without a level, a dash where there is none."""
    low, high = (float(row[name]) for name in names)
    if not level:
        return []
    return [Cell() if math.isnan(low) else Cell(interval=(low, high), digits=digits)]


def _with_digits(rows: pd.DataFrame, *names: str) -> Iterable[tuple[dict[Hashable, Any], int]]:
    """Yield each row with the decimals of its metric: two digits of the narrowest interval, or of the mean."""
    for _, group in rows.groupby("metric", sort=False, observed=True):
        digits = max(_digits_of_row([float(row[name]) for name in names]) for row in group.to_dict("records"))
        yield from ((row, digits) for row in group.to_dict("records"))


def _digits_of_row(values: Sequence[float]) -> int:
    mean, low, high = values
    return _digits(mean if math.isnan(low) else (high - low) / 2)


def _digits(value: float) -> int:
    """Return the decimals that show two digits of a number, 1 to 8."""
    if not value or not math.isfinite(value):
        return 1
    return min(max(1 - math.floor(math.log10(abs(value))), 1), _MOST_DIGITS)
