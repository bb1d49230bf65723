"""What does a sample say of all queries? The estimate of every statistic, and its interval."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lossscope.core.intervals import LEVEL, NO_INTERVAL, Floats, Interval
from lossscope.io.frames import INTERVAL, KEYS
from lossscope.probes.base import Statistic

from ..reducers import REDUCERS, drawn_interval
from ..run_probes import ProbeResult
from ..statistics import batch_statistics
from .intervals import OTHERS, Bools, DrawnNumbers

if TYPE_CHECKING:
    from ..plan import SweepPlan


def estimates(result: ProbeResult, population: int, level: float = LEVEL) -> tuple[dict[str, Any], dict[str, Interval]]:
    """Return statistic -> (1,) estimate for all N queries, and statistic -> its interval, of a sample."""
    columns = result.columns
    usable = ~result.skipped.cpu().numpy()
    values, intervals = batch_statistics([result])[0], {}
    for statistic in result.statistics():
        if statistic.reducer == "curve":
            continue
        column, name = columns[statistic.column].double().cpu().numpy(), statistic.name
        values[name], intervals[name] = estimate(statistic, values[name], column, usable, population, level)
    return values, intervals


def estimate(
    statistic: Statistic, value: Floats, column: Floats, usable: Bools, population: int, level: float = LEVEL
) -> tuple[Floats, Interval]:
    """Return the estimate of a statistic of all N queries, (1,), and its interval.

    Args:
        statistic: of a column.
        value: (1,) statistic of the sampled queries.
        column: (n,) of these.
        usable: (n,) queries that were not skipped.
        population: N.
        level: that the interval holds.
    """
    if REDUCERS[statistic.reducer].is_total and len(column) < population:
        value = value * (population / len(column))
    keep = usable & ~np.isnan(column)
    top = 0.0 if not statistic.is_share else 100.0 if statistic.unit == "%" else 1.0
    drawn = DrawnNumbers(float(value[0]), column, keep, population, top, level)
    return value, drawn_interval(statistic.reducer, drawn)


def method_of(statistic: Statistic) -> str | None:
    """Return how the interval of a statistic is made: `sampled queries, t`; None where there is none."""
    how = REDUCERS[statistic.reducer].method
    if statistic.is_share and statistic.reducer in ("mean", "sum"):
        how = "hypergeometric"
    return None if how is None else f"sampled queries, {how}"


def with_intervals(summary: pd.DataFrame, rows: pd.DataFrame, plan: SweepPlan) -> pd.DataFrame:
    """Return summary rows with low, high, level and method; rows without an interval have none of the four.

    None has one where the plan says so.

    Args:
        summary: a row per statistic.
        rows: wide rows, with the columns `C_q low` and `C_q high`.
        plan: whose statistics they are.
    """
    level = plan.options.interval
    if level is None:
        return summary
    methods = _methods(plan)
    ends = {_key(row): row for row in rows.to_dict("records")}
    filled = []
    for row in summary.to_dict("records"):
        name, wide = str(row["statistic"]), ends[_key(row)]
        low, high = (wide.get(f"{name} {end}") for end in Interval._fields)
        interval = (
            (low, high, level, methods[name]) if pd.notna(low) and pd.notna(high) else (*NO_INTERVAL, math.nan, None)
        )
        row.update(zip(INTERVAL, interval, strict=True))
        filled.append(row)
    return pd.DataFrame(filled, columns=summary.columns)


def lacking(summary: pd.DataFrame, plan: SweepPlan) -> str | None:
    """Say which means of a sample have no interval, and why; None where all have one, or none was asked for."""
    if plan.options.interval is None:
        return None
    names = dict[str, None]()
    methods = _methods(plan)
    for row in summary.to_dict("records"):
        name = str(row["statistic"])
        if pd.notna(row["mean"]) and pd.isna(row["low"]) and str(methods[name]).endswith(" t"):
            names.setdefault(name)
    if not names:
        return None
    return (
        f"{', '.join(names)}: most sampled queries have one value, and fewer than {OTHERS} another, of which a t "
        "interval is too short. Draw more: --queries"
    )


def _key(row: dict[Any, Any]) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in KEYS)


def _methods(plan: SweepPlan) -> dict[str, str | None]:
    return {plan.name_of(statistic.name): method_of(statistic) for statistic in plan.statistics}
