"""What is each image worth to a metric? Numbers per image whose mean is the metric as reported."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from lossscope.errors import InputError

KS = (1, 5, 10)
SIDES = ("i2t", "t2i")


@dataclass(frozen=True)
class Metric:
    """One number of a run: `rsum` of both directions, or `i2t_R@1`, `t2i_MRR` of one."""

    direction: str
    statistic: str

    @property
    def name(self) -> str:
        """As it is asked for."""
        return self.statistic if self.direction == "both" else f"{self.direction}_{self.statistic}"

    @property
    def unit(self) -> str:
        """% for recalls and their sum, 1 for MRR and average precision."""
        return "%" if self.statistic[0] in "rR" else "1"

    @property
    def sides(self) -> tuple[str, ...]:
        """The directions that it needs."""
        return SIDES if self.direction == "both" else (self.direction,)

    def of_queries(self, rows: pd.DataFrame) -> pd.Series[float]:
        """What each query gives: 100 · [rank < k], summed over k for rsum; 1 / (rank + 1); AP@5."""
        rank = rows["rank"]
        if self.statistic == "mAP@5":
            return rows["ap5"].astype(float)
        if self.statistic == "MRR":
            return 1 / (rank + 1)
        ks = KS if self.statistic == "rsum" else (int(self.statistic.removeprefix("R@")),)
        return sum((100.0 * (rank < k) for k in ks), start=pd.Series(0.0, rows.index))


METRICS = {
    metric.name: metric
    for metric in (
        Metric("both", "rsum"),
        *(Metric(side, name) for side in SIDES for name in (*(f"R@{k}" for k in KS), "MRR", "mAP@5")),
    )
}


def metric(name: str) -> Metric:
    """The metric of a name. Raises InputError with those there are."""
    if name not in METRICS:
        raise InputError(f"metric must be one of {', '.join(METRICS)}; got {name!r}")
    return METRICS[name]


def per_image(queries: pd.DataFrame, what: Metric) -> pd.DataFrame:
    """Values (images, runs): column r of the frame is run r; the mean over rows is the metric of the run.

    i2t: what the image gives as a query. t2i: (N / M) · sum over its captions, N images and M captions, so that the
    mean over images is the mean over captions also where images have different numbers of them. rsum: their sum.
    queries: rows of whole runs over the same queries, with columns run, direction, image, rank, ap5.
    """
    found: pd.DataFrame | None = None
    for side in what.sides:
        rows = queries[queries["direction"] == side]
        keyed = pd.DataFrame({"run": rows["run"], "image": rows["image"], "value": what.of_queries(rows)})
        sums = keyed.pivot_table(index="image", columns="run", values="value", aggfunc="sum", observed=True)
        asked = len(rows) / sums.shape[1]
        values = sums * (len(sums) / asked)
        found = values if found is None else found + values
    assert found is not None
    return found
