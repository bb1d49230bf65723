"""What does a sample say about all queries? Return the estimate of every statistic, and its interval."""

from __future__ import annotations

from typing import Any

import numpy as np

from lossscope.core.intervals import Floats, Interval
from lossscope.core.types import LEVEL
from lossscope.probes.base import Statistic

from ..reducers import REDUCERS, drawn_interval
from ..run_probes import ProbeResult
from ..statistics import batch_statistics
from .intervals import Bools, DrawnNumbers


def estimates(result: ProbeResult, population: int, level: float = LEVEL) -> tuple[dict[str, Any], dict[str, Interval]]:
    """Return statistic -> (1,) estimate for all N queries, and statistic -> its interval, from a sample."""
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
        column: (n,) numbers of the sampled queries.
        usable: (n,) queries that were not skipped.
        population: N.
        level: of the interval.
    """
    if REDUCERS[statistic.reducer].is_total and len(column) < population:
        value = value * (population / len(column))
    keep = usable & ~np.isnan(column)
    top = 0.0 if not statistic.is_share else 100.0 if statistic.unit == "%" else 1.0
    drawn = DrawnNumbers(float(value[0]), column, keep, population, top, level)
    return value, drawn_interval(statistic.reducer, drawn)


def method_of(statistic: Statistic) -> str | None:
    """Return the method of the interval of a statistic: `sampled queries, t`; None without an interval."""
    how = REDUCERS[statistic.reducer].method
    if statistic.is_share and statistic.reducer in ("mean", "sum"):
        how = "hypergeometric"
    return None if how is None else f"sampled queries, {how}"
