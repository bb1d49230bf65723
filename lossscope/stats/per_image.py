"""What does each image, or query, contribute to a metric? Numbers whose mean is the metric as reported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from lossscope.core.types import DIRECTIONS
from lossscope.errors import InputError

from .metric_names import BASIC, CUTOFFS, HEADLINES, METRICS, RECALLS, is_measure


@dataclass(frozen=True)
class Metric:
    """One number of a run: `rsum` of both directions, or `i2t_R@1`, `t2i_MRR`, `q2d_nDCG@10` of one direction."""

    direction: str  # i2t, t2i, that of other sides, or both
    statistic: str  # rsum, R@1, R@5, R@10, MRR, mAP@5, or a measure that rows of queries have

    @property
    def name(self) -> str:
        """The name that `parse_metric` reads: `rsum`, `i2t_R@1`."""
        return self.statistic if self.direction == "both" else f"{self.direction}_{self.statistic}"

    @property
    def unit(self) -> str:
        """% for recalls and their sum, 1 for MRR, gains and precisions."""
        return "%" if self.statistic.startswith(("rsum", "R@", "recall@")) else "1"

    @property
    def directions(self) -> tuple[str, ...]:
        """The directions whose queries the metric is computed from."""
        return DIRECTIONS if self.direction == "both" else (self.direction,)

    def query_values(self, rows: pd.DataFrame) -> pd.Series[float]:
        """Return the value of each query: 100 · [rank < k], summed over k for rsum; 1 / (rank + 1); AP@5; a column."""
        rank = rows["rank"]
        if self.statistic not in (*BASIC, "rsum"):
            return rows[self.statistic].astype(float)
        if self.statistic == "mAP@5":
            return rows["ap5"].astype(float)
        if self.statistic == "MRR":
            return 1 / (rank + 1)
        cutoffs = CUTOFFS if self.statistic == "rsum" else (int(self.statistic.removeprefix("R@")),)
        return sum((100.0 * (rank < k) for k in cutoffs), start=pd.Series(0.0, rows.index))


def parse_metric(name: str, known: Sequence[str] = METRICS) -> Metric:
    """Return the metric of a name. Raises InputError, listing those that are known, for another name."""
    if name not in known:
        raise InputError(f"metric must be one of {', '.join(known)}; got {name!r}")
    direction, _, statistic = name.rpartition("_")
    return Metric(direction or "both", statistic)


def metrics_of(queries: pd.DataFrame) -> tuple[str, ...]:
    """Return the names of the metrics that rows of single queries have; the first is the one to compare on.

    Of images and captions rsum, then i2t_R@1 ...; of other sides q2d_nDCG@10, then q2d_R@1 ....

    Args:
        queries: rows of `per_query`.
    """
    names: dict[str, None] = {}
    for direction, rows in queries.groupby("direction", sort=False, observed=True):
        measures = [name for name in rows if is_measure(str(name)) and rows[name].notna().any()]
        shown = [f"{direction}_{name}" for name in dict.fromkeys((*BASIC, *measures))]
        first = METRICS if direction in DIRECTIONS else [name for name in shown if name.endswith("_nDCG@10")]
        names |= dict.fromkeys((*first, *shown))
    return tuple(names)


def headline_metrics(queries: pd.DataFrame) -> tuple[str, ...]:
    """Return the names of the metrics that a report tests: rsum and recalls, or nDCG@10, R@1 and MAP@R."""
    headlines = {f"{direction}_{name}" for direction in queries["direction"].unique() for name in HEADLINES}
    wanted = {*RECALLS, *(name for name in headlines if name.partition("_")[0] not in DIRECTIONS)}
    return tuple(name for name in metrics_of(queries) if name in wanted)


def per_image(queries: pd.DataFrame, metric: Metric) -> pd.DataFrame:
    """Return values (images, runs), one column a run; the mean over images is the metric of the run.

    i2t: the value of the image as a query. t2i: (N / M) · sum over its captions, N images and M captions, so that the
    mean over images is the mean over captions also where images have different numbers of them. rsum: their sum. Of
    other sides an "image" is the query itself.

    Args:
        queries: rows of whole runs over the same queries, with columns run, direction, image, rank, ap5.
        metric: what is computed of each query.
    """
    total: pd.DataFrame | None = None
    for direction in metric.directions:
        rows = queries[queries["direction"] == direction]
        by_query = pd.DataFrame({"run": rows["run"], "image": rows["image"], "value": metric.query_values(rows)})
        sums = by_query.pivot_table(index="image", columns="run", values="value", aggfunc="sum", observed=True)
        n_queries = len(rows) / sums.shape[1]
        values = sums * (len(sums) / n_queries)
        total = values if total is None else total + values
    assert total is not None
    return total
