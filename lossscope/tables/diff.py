"""What differs between A and B? A line per statistic and direction: both numbers, their difference, its interval."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pandas as pd

from lossscope.errors import InputError
from lossscope.io.frames import require_columns

from ._intervals import bracketed, percents
from ._legend import legend
from ._settings import used_rows
from ._specs import KINDS, shorten
from ._summary import differing_settings, format_value, unit_text
from .base import Table
from .cells import DASH, Cell

Row = Mapping[Hashable, Any]
REQUIRED = (
    "source", "b_source", "objective", "b_objective", "direction", "probe", "statistic", "mean", "b_mean", "difference",
    "low", "high", "level", "method", "n", "unit", "eps", "b_eps", "batch_size", "sampling", "seed",
)  # fmt: skip
QUERIES = ("item", "a", "b", "difference", "n", "statistic", "direction")
NEGATIVES = (
    "query_id", "side", "rank", "candidate_id", "candidate_text", "negative_weight", "similarity",
)  # fmt: skip
_SURE = "†"
_DIGITS = {"samples": 3, "queries": 2, "rank": 2, "%": 2}


def build(frame: pd.DataFrame) -> list[Table]:
    """Return a table for each probe.

    Args:
        frame: rows of `lossscope diff`.

    Raises:
        InputError: columns or rows are missing.
    """
    require_columns(frame, REQUIRED, "rows of diff")
    if frame.empty:
        raise InputError("table diff must have rows; got none. A and B must have a statistic in common")
    return [_table(rows, str(probe)) for probe, rows in frame.groupby("probe", sort=False, observed=True)]


def build_queries(queries: pd.DataFrame) -> Table:
    """Return a table of the queries that changed most.

    Args:
        queries: columns QUERIES, of one statistic.
    """
    require_columns(queries, QUERIES, "queries of diff")
    if queries.empty:
        raise InputError("table of queries must have rows; got none")
    statistic = str(queries["statistic"].iloc[0])
    several = [name for name in ("probe",) if name in queries and queries[name].nunique() > 1]
    more = _settings(queries)
    has_pairs = "b_objective" in queries and any(queries["objective"].astype(str) != queries["b_objective"].astype(str))
    pairs = "objectives" if has_pairs else "objective"
    names = *several, "direction", pairs, *more, "query", "batches", "A", "B", "B − A"
    columns = tuple(("", name.replace("_", " ")) for name in names)
    rows = tuple(
        (
            *(Cell(text=str(row[name])) for name in several), Cell(text=str(row["direction"])),
            Cell(text=_pair(row)), *(_setting(row, name) for name in more), Cell(text=str(row["item"])),
            Cell(mean=float(row["n"]), digits=0), *(_number(row[name], "samples") for name in ("a", "b", "difference")),
        )
        for row in queries.to_dict("records")
    )  # fmt: skip
    caption = f"The queries whose {statistic} changed most; each number is a mean over the query's batches."
    return Table("diff_queries", caption, columns, rows)


def _table(rows: pd.DataFrame, probe: str) -> Table:
    objectives = rows[["objective", "b_objective"]].drop_duplicates()
    several = len(objectives) > 1
    more, interval = _settings(rows), _interval_heading(rows)
    names = [name.replace("_", " ") for name in (*(["objective"] if several else []), *more)]
    columns = (*names, "direction", "statistic", "A", "B", "B − A", *interval)
    body = tuple(_line(row, several, more, bool(interval)) for row in rows.to_dict("records"))
    explained = legend((probe, str(name)) for name in rows["statistic"].unique())
    notes = _notes(rows)
    return Table(
        f"diff_{probe}", _caption(rows, probe, several), tuple(("", c) for c in columns), body, notes, explained
    )


def _settings(rows: pd.DataFrame) -> list[str]:
    """Return those of eps, convention and unit of weights that differ between rows of a statistic."""
    several = differing_settings(rows)
    if "eps" not in several and "b_eps" in rows and rows["b_eps"].nunique(dropna=False) > 1:
        several = ["eps", *several]
    return several


def _setting(row: Row, name: str) -> Cell:
    a = format_value(row[name])
    b = format_value(row.get("b_eps", row["eps"])) if name == "eps" else a
    return Cell(text=a if a == b else f"{a} → {b}")


def _line(row: Row, several: bool, more: Sequence[str], intervals: bool) -> tuple[Cell, ...]:
    unit, sure = str(row["unit"]), excludes_zero(row)
    first = (*((Cell(text=_pair(row)),) if several else ()), *(_setting(row, name) for name in more))
    names = (*first, Cell(text=str(row["direction"])), Cell(text=str(row["statistic"])))
    both = _number(row["mean"], unit), _number(row["b_mean"], unit)
    ends = (Cell(text=_interval(row)),) if intervals else ()
    return (*names, *both, _number(row["difference"], unit, _SURE if sure else ""), *ends)


def build_negatives(negatives: pd.DataFrame) -> Table:
    """Return a table of the heaviest negatives of the queries that changed most, under A and B.

    Args:
        negatives: columns NEGATIVES.
    """
    require_columns(negatives, NEGATIVES, "negatives of diff")
    weighs = negatives[negatives["rank"] > 0]
    if weighs.empty:
        raise InputError("table of negatives must have rows with weight; got none")
    names = "query", "side", "rank", "negative", "text", "weight", "similarity"
    rows = tuple(
        (
            Cell(text=str(row["query_id"])), Cell(text=str(row["side"])), Cell(mean=float(row["rank"]), digits=0),
            Cell(text=str(row["candidate_id"])), Cell(text=str(row["candidate_text"] or DASH)),
            Cell(mean=float(row["negative_weight"]), digits=4), Cell(mean=float(row["similarity"]), digits=3),
        )
        for row in weighs.to_dict("records")
    )  # fmt: skip
    caption = "The heaviest negatives of the queries that changed most, in the batch where each changed most."
    return Table("diff_negatives", caption, tuple(("", name) for name in names), rows)


def excludes_zero(row: Row) -> bool:
    """Return whether the interval of a row excludes 0."""
    low: float | None = row["low"]
    return pd.notna(low) and bool(low > 0 or row["high"] < 0)


def _interval(row: Row) -> str:
    low: float | None = row["low"]
    if pd.isna(low) and row["method"] == "equal":
        return "equal"
    return bracketed(low, row["high"], _decimals(str(row["unit"])))


def _number(value: Any, unit: str, mark: str = "") -> Cell:
    number = float(value)
    return Cell(mean=number, digits=_decimals(unit), mark=mark)


def _decimals(unit: str) -> int:
    return _DIGITS.get(unit, 4)


def _pair(row: Row) -> str:
    a = _spec(row.get("objective"))
    b = _spec(row.get("b_objective", row.get("objective")))
    return a if a == b else f"{a} → {b}"


def _spec(value: object) -> str:
    if not isinstance(value, str):
        return DASH
    return shorten([value], KINDS["objective"]).get(value, value)


def _caption(rows: pd.DataFrame, probe: str, several: bool) -> str:
    row = rows.iloc[0]
    sides = []
    for source, objective in (("source", "objective"), ("b_source", "b_objective")):
        under = "" if several or not isinstance(row[objective], str) else f" under {_spec(row[objective])}"
        sides.append(f"{format_value(row[source])}{under}")
    is_named = pd.notna(row["eps"]) and "eps" not in _settings(rows)
    eps = f"; eps {row['eps']:g}" if is_named else ""
    if is_named and row["b_eps"] != row["eps"]:
        eps = f"; eps {row['eps']:g} of A, {row['b_eps']:g} of B"
    counted = f"{unit_text(rows)}{eps}"
    size = f"batch size {row['batch_size']:g}; sampling {row['sampling']}; seed {row['seed']:g}"
    compared = "; ".join([f"A is {sides[0]}", f"B is {sides[1]}", *used_rows(rows)])
    return (
        f"{probe}: {compared}. The same batches and masks on both sides{counted}; {size}; means over "
        f"n = {int(row['n'])} batches."
    )


def _notes(rows: pd.DataFrame) -> tuple[str, ...]:
    methods = [text for text in rows["method"].dropna().unique() if text != "equal"]
    notes = []
    if methods:
        marked = sum(excludes_zero(row) for row in rows.to_dict("records"))
        number = int(rows["low"].notna().sum())
        notes.append(
            f"Intervals of the difference: uncertainty of the test set, not of training ({'; '.join(methods)}). "
            f"{_SURE}: the interval excludes 0, in {marked} of {number}; expect "
            f"{_missed(rows)} % false positives."
        )
    if _interval_heading(rows) and (rows["method"] == "equal").any():
        notes.append("equal: every query and every batch has the same number on both sides.")
    both = rows["objective"].notna() & (rows["objective"] != rows["b_objective"])
    if both.any() and "weight_unit" in rows and (rows.loc[both, "weight_unit"] == "paper").any():
        notes.append(
            "Weights and eps are in the scale of each objective's own paper; --unit relative puts both on one scale."
        )
    return tuple(notes)


def _missed(rows: pd.DataFrame) -> str:
    return f"{100 * (1 - float(rows['level'].dropna().iloc[0])):g}"


def _interval_heading(rows: pd.DataFrame) -> tuple[str, ...]:
    """Return the heading of the column of intervals; none if no row has an interval or says why not."""
    levels = percents(rows["level"])
    if not levels:
        return ("interval",) if (rows["method"] == "equal").all() else ()
    return (f"{levels} interval",)
