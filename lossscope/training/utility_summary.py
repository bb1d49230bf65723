"""mean ± t · s / √n over batches: what one step with each loss is worth, and what it is worth more than the first."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pandas as pd

from lossscope.core.intervals import NO_INTERVAL, Interval, t_quantile
from lossscope.core.types import LEVEL
from lossscope.errors import InputError
from lossscope.io.frames import require_columns

from .one_step_utility import COLUMNS as OF_BATCHES
from .one_step_utility import SETTINGS

Values = npt.NDArray[np.float64]
COLUMNS = (
    "source", "objective", "baseline", "direction", "metric", "unit", "before", "change", "low", "high", "difference",
    "difference_low", "difference_high", "per_counted", "per_counted_low", "per_counted_high", "per_counted_difference",
    "per_counted_difference_low", "per_counted_difference_high", "per_query", "per_query_low", "per_query_high",
    "counted", "counted_low", "counted_high", "queries_with_weight", "queries", "gradient_norm", "no_gradient",
    "n", "n_defined", "linearity", "level", *SETTINGS,
)  # fmt: skip
_LEAST = 1e-12  # deviation, as a share of the largest number, below which all batches are alike but for rounding


def summarise_utility(rows: pd.DataFrame, level: float | None = LEVEL) -> pd.DataFrame:
    """Return a row for each source, objective, direction and metric, with intervals over batches. Columns COLUMNS:

    - change, per_counted, per_query: means over batches, with the ends of their t intervals. They cover the draw of the
      batches of this split, not other items, nor other trainings.
    - difference, per_counted_difference: to the first objective (`baseline`) of the same source, batch by batch; NaN of
      the first.
    - counted, queries_with_weight, gradient_norm: means over batches. no_gradient: batches without a gradient.
    - n: batches. n_defined: batches whose change / counted is defined.
    - linearity: change of a whole step / twice that of half a step, on the batches that have both; 1 where the utility
      is in proportion to the length of the step.

    An interval is NaN of fewer than two batches, and where all batches have one number.

    Args:
        rows: of `one_step_utility`, of one or several sources.
        level: that the intervals hold; None: no intervals.

    Raises:
        InputError: columns or rows are missing, or objectives have different batches.
    """
    require_columns(rows, OF_BATCHES, "rows of one-step utility")
    if rows.empty:
        raise InputError("rows of one-step utility must be one or more; got none")
    lines: list[dict[str, object]] = []
    for _, group in rows.groupby(["source", "direction", "metric"], sort=False, observed=True):
        names = [str(name) for name in group["objective"].unique()]
        first = names[0]
        baseline = group[group["objective"] == first].set_index("batch")
        for objective in names:
            part = group[group["objective"] == objective].set_index("batch")
            if not part.index.equals(baseline.index):
                raise InputError(f"batches of {objective} must be those of {first}, batch by batch; they differ")
            line = _line(part, level)
            if objective != first:
                line |= {"baseline": first, **_differences(part, baseline, level)}
            lines.append({"objective": objective, **line})
    return pd.DataFrame(lines).reindex(columns=list(COLUMNS)).sort_values(
        ["source", "objective"], key=lambda column: column.map({name: i for i, name in enumerate(column.unique())}),
        kind="stable", ignore_index=True,
    )  # fmt: skip


def batch_interval(values: Values, level: float | None) -> Interval:
    """Return mean ∓ t · s / √n; NaN without a level, of fewer than two numbers, and where all are equal.

    >>> [round(end, 3) for end in batch_interval(np.array([1.0, 2.0, 3.0]), 0.95)]
    [-0.484, 4.484]
    """
    n = len(values)
    if level is None or n < 2 or float(np.ptp(values)) <= _LEAST * float(np.abs(values).max()):
        return NO_INTERVAL
    half = t_quantile(level, n - 1) * float(values.std(ddof=1)) / math.sqrt(n)
    middle = float(values.mean())
    return Interval(middle - half, middle + half)


def _line(part: pd.DataFrame, level: float | None) -> dict[str, object]:
    """Return the numbers of one objective, direction and metric."""
    first = part.iloc[0]
    halved = part[part["half_change"].notna()]
    twice = 2 * float(halved["half_change"].sum())
    return {
        **{name: first[name] for name in ("source", "direction", "metric", "unit")},
        "baseline": None, "before": float(first["before"]),
        **_mean(part["change"], "change", level, ("low", "high")), **_mean(part["per_counted"], "per_counted", level),
        **_mean(part["per_query"], "per_query", level), **_mean(part["counted"], "counted", level),
        "queries_with_weight": float(part["queries_with_weight"].mean()), "queries": float(part["queries"].mean()),
        "gradient_norm": float(part["gradient_norm"].mean()), "no_gradient": int(part["no_gradient"].sum()),
        "n": len(part), "n_defined": int(part["per_counted"].notna().sum()),
        "linearity": float(halved["change"].sum()) / twice if twice else math.nan,
        "level": math.nan if level is None else level, **{name: first[name] for name in SETTINGS},
    }  # fmt: skip


def _differences(part: pd.DataFrame, baseline: pd.DataFrame, level: float | None) -> dict[str, float]:
    """Return the paired differences to the first objective."""
    change, per_counted = (part[name] - baseline[name] for name in ("change", "per_counted"))
    return _mean(change, "difference", level) | _mean(per_counted, "per_counted_difference", level)


def _mean(
    column: pd.Series[float], name: str, level: float | None, ends: tuple[str, str] | None = None
) -> dict[str, float]:
    """Return the mean over the batches that have the number, and the ends of its interval."""
    values: Values = column.dropna().to_numpy().astype(np.float64)
    low, high = ends or (f"{name}_low", f"{name}_high")
    interval = batch_interval(values, level) if len(values) else NO_INTERVAL
    return {name: float(values.mean()) if len(values) else math.nan, low: interval.low, high: interval.high}
