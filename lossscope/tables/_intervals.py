"""low to high: the intervals of summary rows as cells, and what they and the numbers of a sample are of, in words.

Intervals are over data. Cells that are means over runs have none: the spread over seeds is another thing, and an
average of intervals is the interval of nothing.
"""

from __future__ import annotations

import pandas as pd

from ._summary import Row
from .cells import DASH, MINUS, Cell

SAMPLED = "queries, all candidates"  # how the sampling of such rows ends
_TWO_WAY, _SAMPLED = "two-way over ", "sampled queries, "  # how methods begin
_TIES = (
    "Ties are judged by all digits of float32: copies of an item among the candidates may come out a last bit before "
    "or behind the positive, which moves its rank. lossscope eval ranks each item once."
)


def has_intervals(rows: pd.DataFrame) -> bool:
    """Return whether any summary row states an interval."""
    return "low" in rows and bool((rows["low"].notna() & rows["high"].notna()).any())


def interval_cell(rows: pd.DataFrame, digits: int) -> Cell:
    """Return `1.31 to 1.92` of the one row of a number; a dash where there is none, or where there are several."""
    if len(rows) != 1 or not has_intervals(rows):
        return Cell()
    low, high = rows[["low", "high"]].iloc[0]
    return Cell(interval=(float(low), float(high)), digits=digits) if pd.notna(low) and pd.notna(high) else Cell()


def bracketed(low: float | None, high: float | None, digits: int) -> str:
    """Return `[−0.09, 0.12]`; a dash where there is no interval."""
    return DASH if pd.isna(low) else f"[{low:z.{digits}f}, {high:z.{digits}f}]".replace("-", MINUS)


def percents(levels: pd.Series) -> str:
    """Return the levels of intervals: `95 %`, or `95 % and 99 %`; empty without any."""
    return " and ".join(f"{100 * level:g} %" for level in sorted(levels.dropna().unique()))


def cell_of_line(line: Row, direction: str, statistic: str, digits: int) -> Cell:
    """Return the interval of a statistic of one direction in a line of a table."""
    own = line.rows[(line.rows["direction"] == direction) & (line.rows["statistic"] == statistic)]
    return interval_cell(own, digits)


def interval_sentence(rows: pd.DataFrame) -> str:
    """Return `95 % intervals: for other images like these, two-way over 600 images.`; empty without any."""
    own = rows[rows["low"].notna()] if has_intervals(rows) else rows[:0]
    if own.empty:
        return ""
    levels = " and ".join(f"{100 * level:.6g}" for level in sorted(own["level"].dropna().unique()))
    parts: dict[str, dict[str, None]] = {}
    for method, sampling in own[["method", "sampling"]].drop_duplicates().to_numpy():
        sample = is_sample(sampling)
        how = str(method).removeprefix(_SAMPLED) if sample else str(method)
        parts.setdefault(_population(str(method), sample), {})[how] = None
    each = (f"{population}, {' or '.join(methods)}" for population, methods in parts.items())
    return f"{levels} % intervals: {'; '.join(each)}."


def _population(method: str, sample: bool) -> str:
    """Return what an interval is for: `for other images like these`."""
    if sample:
        return "for all queries of this set"
    number_and_units = method.removeprefix(_TWO_WAY)
    return f"for other {number_and_units.partition(' ')[2] if _TWO_WAY in method else 'items'} like these"


def is_sample(sampling: object) -> bool:
    """Return whether rows of this sampling are of some queries, not all."""
    return str(sampling).endswith(SAMPLED)


def sample_note(rows: pd.DataFrame) -> list[str]:
    """Return footnotes on summary rows of a sample, and on ranks that last bits decide; none for others."""
    if not rows["sampling"].map(is_sample).any():
        return []
    tied = bool((rows.loc[rows["statistic"] == "ties", "mean"] > 0).any())
    return ["Estimates for all queries of this set, not for other items like these.", *([_TIES] if tied else [])]
