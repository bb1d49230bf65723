"""Add the interval of every statistic to summary rows, from the wide rows of a sample, or say why it has none."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from lossscope.core.intervals import NO_INTERVAL, Interval
from lossscope.io.frames import INTERVAL, KEYS

from ..plan import SweepPlan
from .estimates import method_of
from .intervals import OTHERS


def with_intervals(summary: pd.DataFrame, rows: pd.DataFrame, plan: SweepPlan) -> pd.DataFrame:
    """Return summary rows with low, high, level and method; all four are empty for a row without an interval.

    If the plan asks for no intervals, the rows are unchanged.

    Args:
        summary: a row per statistic.
        rows: wide rows, with the columns `C_q low` and `C_q high`.
        plan: of the statistics.
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
    """Return which means of a sample have no interval, and why; None if all have one, or the plan asks for none."""
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
        f"{', '.join(names)}: most sampled queries have one value, and fewer than {OTHERS} another, so a t "
        "interval would be too short. Draw more: --queries"
    )


def _key(row: dict[Any, Any]) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in KEYS)


def _methods(plan: SweepPlan) -> dict[str, str | None]:
    return {plan.name_of(statistic.name): method_of(statistic) for statistic in plan.statistics}
