"""Write intervals of summary rows as cells, `low to high`, and explain intervals and samples in words.

Intervals are over data. Means over runs have no interval: the spread over seeds is a different quantity, and an average
of intervals is not an interval.
"""

from __future__ import annotations

import pandas as pd

from ._summary import Row
from .cells import DASH, MINUS, Cell

SAMPLED = "queries, all candidates"  # end of the column `sampling` in rows of a sample
_TWO_WAY, _SAMPLED = "two-way over ", "sampled queries, "  # start of the column `method`
_TIES = (
    "Ranks compare all digits of float32: a copy of the positive among the candidates may differ from it in the last "
    "bit, which changes the rank of the positive. `lossscope eval` ranks each item once."
)


def has_intervals(rows: pd.DataFrame) -> bool:
    """Return whether any summary row states an interval."""
    return "low" in rows and bool((rows["low"].notna() & rows["high"].notna()).any())


def interval_cell(rows: pd.DataFrame, digits: int) -> Cell:
    """Return `1.31 to 1.92` from the single row of a number; a dash without a row or with several."""
    if len(rows) != 1 or not has_intervals(rows):
        return Cell()
    low, high = rows[["low", "high"]].iloc[0]
    return Cell(interval=(float(low), float(high)), digits=digits) if pd.notna(low) and pd.notna(high) else Cell()


def bracketed(low: float | None, high: float | None, digits: int) -> str:
    """Return `[−0.09, 0.12]`; a dash without an interval."""
    return DASH if pd.isna(low) else f"[{low:z.{digits}f}, {high:z.{digits}f}]".replace("-", MINUS)


def percents(levels: pd.Series) -> str:
    """Return the levels of intervals: `95 %` or `95 % and 99 %`; empty without any."""
    return " and ".join(f"{100 * level:g} %" for level in sorted(levels.dropna().unique()))


def cell_of_line(line: Row, direction: str, statistic: str, digits: int) -> Cell:
    """Return the interval of a statistic of one direction in a line of a table."""
    rows = line.rows[(line.rows["direction"] == direction) & (line.rows["statistic"] == statistic)]
    return interval_cell(rows, digits)


def interval_sentence(rows: pd.DataFrame) -> str:
    """Return `95 % intervals: for other images like these, two-way over 600 images.`; empty without any."""
    with_interval = rows[rows["low"].notna()] if has_intervals(rows) else rows[:0]
    if with_interval.empty:
        return ""
    levels = " and ".join(f"{100 * level:.6g}" for level in sorted(with_interval["level"].dropna().unique()))
    parts: dict[str, dict[str, None]] = {}
    for method, sampling in with_interval[["method", "sampling"]].drop_duplicates().to_numpy():
        sample = is_sample(sampling)
        how = str(method).removeprefix(_SAMPLED) if sample else str(method)
        parts.setdefault(_population(str(method), sample), {})[how] = None
    each = (f"{population}, {' or '.join(methods)}" for population, methods in parts.items())
    return f"{levels} % intervals: {'; '.join(each)}."


def _population(method: str, sample: bool) -> str:
    """Return the population of an interval: `for other images like these`."""
    if sample:
        return "for all queries of this set"
    number_and_units = method.removeprefix(_TWO_WAY)
    return f"for other {number_and_units.partition(' ')[2] if _TWO_WAY in method else 'items'} like these"


def is_sample(sampling: object) -> bool:
    """Return whether rows with this sampling come from a sample of queries."""
    return str(sampling).endswith(SAMPLED)


def sample_note(rows: pd.DataFrame) -> list[str]:
    """Return footnotes on rows of a sample, and on ranks that depend on last bits; none for other rows."""
    if not rows["sampling"].map(is_sample).any():
        return []
    tied = bool((rows.loc[rows["statistic"] == "ties", "mean"] > 0).any())
    return ["Estimates for all queries of this set, not for other items like these.", *([_TIES] if tied else [])]
