"""What does each image contribute to a metric? Numbers per image whose mean is the metric as reported."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from lossscope.core.types import DIRECTIONS
from lossscope.errors import InputError

from .metric_names import CUTOFFS, METRICS


@dataclass(frozen=True)
class Metric:
    """One number of a run: `rsum` of both directions, or `i2t_R@1`, `t2i_MRR` of one direction."""

    direction: str  # i2t, t2i or both
    statistic: str  # rsum, R@1, R@5, R@10, MRR or mAP@5

    @property
    def name(self) -> str:
        """The name that `parse_metric` reads: `rsum`, `i2t_R@1`."""
        return self.statistic if self.direction == "both" else f"{self.direction}_{self.statistic}"

    @property
    def unit(self) -> str:
        """% for recalls and their sum, 1 for MRR and average precision."""
        return "%" if self.statistic[0] in "rR" else "1"

    @property
    def directions(self) -> tuple[str, ...]:
        """The directions whose queries the metric is computed from."""
        return DIRECTIONS if self.direction == "both" else (self.direction,)

    def query_values(self, rows: pd.DataFrame) -> pd.Series[float]:
        """Return the value of each query: 100 · [rank < k], summed over k for rsum; 1 / (rank + 1); AP@5."""
        rank = rows["rank"]
        if self.statistic == "mAP@5":
            return rows["ap5"].astype(float)
        if self.statistic == "MRR":
            return 1 / (rank + 1)
        cutoffs = CUTOFFS if self.statistic == "rsum" else (int(self.statistic.removeprefix("R@")),)
        return sum((100.0 * (rank < k) for k in cutoffs), start=pd.Series(0.0, rows.index))


def parse_metric(name: str) -> Metric:
    """Return the metric of a name. Raises InputError, listing the metrics, for another name."""
    if name not in METRICS:
        raise InputError(f"metric must be one of {', '.join(METRICS)}; got {name!r}")
    direction, _, statistic = name.rpartition("_")
    return Metric(direction or "both", statistic)


def per_image(queries: pd.DataFrame, metric: Metric) -> pd.DataFrame:
    """Return values (images, runs), one column a run; the mean over images is the metric of the run.

    i2t: the value of the image as a query. t2i: (N / M) · sum over its captions, N images and M captions, so that the
    mean over images is the mean over captions also where images have different numbers of them. rsum: their sum.

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
