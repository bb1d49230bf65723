"""The numbers of pilot runs: a metric of every image and run, or a count of every run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import pandas as pd

from lossscope.core.types import DIRECTIONS
from lossscope.errors import InputError

from .baseline import baseline_second
from .pairing import Block, SeedPairs, System, pair_seeds
from .per_image import metrics_of, parse_metric, per_image

IMAGES, QUERIES = "images", "queries"
_CONVENTION = "corrected"  # of the counts


@dataclass(frozen=True)
class PilotValues:
    """A metric of the runs of a block."""

    statistic: str
    direction: str  # or both
    unit: str
    over: str | None  # what a row of `values` is: images or queries; None: one number of each run
    values: pd.DataFrame  # a column per run, whose mean is the metric of the run


@dataclass(frozen=True)
class PilotPair:
    """Two systems of a block that have a metric."""

    block: Block
    a: System
    b: System  # the baseline
    runs: SeedPairs


def known_metrics(queries: pd.DataFrame, counts: pd.DataFrame | None = None) -> tuple[str, ...]:
    """Return the names of the metrics of single queries, then those of counts: rsum, ..., i2t_C_neg."""
    counted = _counted(counts)
    named = counted[["direction", "statistic"]].drop_duplicates().itertuples(index=False)
    return *metrics_of(queries), *(f"{direction}_{statistic}" for direction, statistic in named)


def measured_pairs(
    name: str, blocks: Sequence[Block], baseline: str | None, counts: pd.DataFrame | None
) -> list[tuple[PilotValues, PilotPair]]:
    """Return the pairs that are asked for and have a metric. Raises InputError where there is none."""
    pairs = []
    for block in blocks:
        values = _values_of(name, block, counts)
        for first, other in combinations(block.systems, 2):
            a, b = baseline_second(first, other, baseline or "")
            runs = pair_seeds(a, b)
            if values is not None and baseline in (None, b.name) and {*runs.a, *runs.b} <= set(values.values):
                pairs.append((values, PilotPair(block, a, b, runs)))
    if not pairs:
        against = f" with {baseline} as one of them" if baseline else ""
        raise InputError(
            f"{name} must be a number of at least two systems with the same data and encoder{against}, in "
            "each of their runs; fewer have it. Not every loss has every count. Name another --metric"
        )
    return pairs


def _values_of(name: str, block: Block, counts: pd.DataFrame | None = None) -> PilotValues | None:
    """Return a metric of a block; None where the block lacks it.

    Args:
        name: one of `known_metrics`.
        block: systems of one data and encoder.
        counts: summary rows of the runs, with a column `run`.

    Raises:
        InputError: a run was counted several times, with different eps.
    """
    queries = metrics_of(block.queries)
    if name in queries:
        metric = parse_metric(name, queries)
        over = IMAGES if metric.direction in (*DIRECTIONS, "both") else QUERIES
        return PilotValues(metric.statistic, metric.direction, metric.unit, over, per_image(block.queries, metric))
    direction, _, statistic = name.partition("_")
    rows = _counted(counts)
    of_metric = rows[
        (rows["direction"] == direction)
        & (rows["statistic"] == statistic)
        & rows["run"].isin([run for system in block.systems for run in system.runs.values()])
        & rows["mean"].notna()
    ]
    if of_metric.empty:
        return None
    twice = of_metric[of_metric.duplicated("run", keep=False)]
    if len(twice):
        eps = ", ".join(f"{value:g}" for value in twice.loc[twice["run"] == twice["run"].iloc[0], "eps"])
        raise InputError(f"{name} of a run must be one number; {twice['run'].iloc[0]} has those of eps {eps}. Keep one")
    return PilotValues(
        statistic, direction, str(of_metric["unit"].iloc[0]), None, of_metric.set_index("run")[["mean"]].T
    )


def _counted(counts: pd.DataFrame | None) -> pd.DataFrame:
    """Return the rows of `cocos` in the corrected convention."""
    if counts is None:
        return pd.DataFrame(columns=["run", "direction", "statistic", "mean", "eps", "unit"])
    return counts[(counts["probe"] == "cocos") & (counts["convention"] == _CONVENTION)]
