"""What would the mean be without these items? Intervals of statistics that are not smooth functions of means.

Two kinds do not add up over queries and candidates: a statistic of a whole batch, such as an effective rank, and the
weights of an objective whose rows influence each other. The jackknife cuts the items into G groups at random, and
repeats the sweep G times on the same batches without one group: θ_g. SE² = (G − 1) / G Σ (θ_g − θ̄)², with t of G − 1
degrees of freedom (delete-a-group jackknife, Kott 2001). A bootstrap of items would make copies of an item each other's
negatives.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from lossscope.core.batch_subsets import keep_items
from lossscope.core.batches import Batch
from lossscope.core.distributed import ProcessGroup
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.intervals import t_quantile
from lossscope.core.sampling_units import SamplingUnits
from lossscope.core.shuffles import shuffle_rows
from lossscope.core.sides import plural
from lossscope.core.types import Progress
from lossscope.io.frames import KEYS, summarise

from .batch_runner import BatchRunner
from .plan import Batching, SweepPlan
from .sweep_intervals import clip_interval
from .workers import ALONE, Workers

_STREAM = 4 << 32  # of random words, apart from the streams of batches
_SAME = tuple(name for name in KEYS if name != "batch_size")  # a batch of everything shrinks without a group


@dataclass(frozen=True)
class Jackknife:
    """Repeat a sweep without each group of items."""

    plan: SweepPlan
    embedded: SplitEmbeddings
    units: SamplingUnits
    groups: int
    level: float
    processes: ProcessGroup
    progress: Progress | None = None
    guide: SplitEmbeddings | None = None
    workers: Workers = ALONE

    def fill(self, summary: pd.DataFrame) -> pd.DataFrame:
        """Return summary rows with the missing intervals; totals of batches stay without an interval."""
        missing = summary["low"].isna() & summary["mean"].notna() & ~summary["statistic"].isin(list(self._totals))
        if not missing.any():
            return summary
        plan = self.plan.with_probes(self._probes(summary[missing]))
        group = shuffle_rows(self.units.number, self.plan.options.seed, _STREAM) % self.groups
        means = [self._means(plan, group != left_out, left_out) for left_out in range(self.groups)]
        rows: list[dict[Any, Any]] = []
        for index, row in enumerate(summary.to_dict("records")):
            of_groups = np.array([means_without.get(_name(row), math.nan) for means_without in means])
            if missing.iloc[index] and np.isfinite(of_groups).all():
                row.update(self._interval(row, of_groups))
            rows.append(row)
        return pd.DataFrame(rows, columns=summary.columns)

    def _interval(self, row: Mapping[Any, Any], of_groups: npt.NDArray[np.float64]) -> dict[str, Any]:
        """Return the columns of the interval of a summary row; none if no group makes a difference."""
        n, mean = len(of_groups), float(row["mean"])
        error = float(np.sqrt((n - 1) / n * np.square(of_groups - of_groups.mean()).sum()))
        if error <= 1e-12 * max(abs(mean), 1e-12):
            return {}
        half = t_quantile(self.level, n - 1) * error
        method = f"jackknife of {n} groups of {plural(self.units.name)}"
        low, high = clip_interval(mean - half, mean + half, str(row["unit"]), row["statistic"] in self.plan.within_one)
        return {"low": low, "high": high, "level": self.level, "method": method}

    @property
    def _totals(self) -> frozenset[str]:
        """Statistics of a whole batch, which shrink with the batch."""
        return frozenset(self.plan.name_of(name) for name in self.plan.totals)

    def _probes(self, rows: pd.DataFrame) -> tuple[Any, ...]:
        """Return the probes whose statistics are among the rows, and probes of the same type."""
        wanted = {str(name).partition(":")[0].replace("-", "_") for name in rows["probe"]}
        return tuple(
            probe for probe in self.plan.probes if type(probe).__module__.rpartition(".")[2] in wanted
        ) or self.plan.probes  # fmt: skip

    def _means(self, plan: SweepPlan, kept: npt.NDArray[np.bool_], left_out: int) -> dict[tuple[Any, ...], float]:
        """Return the mean of each statistic over the batches without a group."""
        parts = []
        for batching in plan.batchings:
            batches = list(self._batches(batching, kept))
            runner = BatchRunner(plan, batching, self.embedded, self.processes, None, self.guide, workers=self.workers)
            parts.append(runner.run(batches).batches)
        if self.progress:
            self.progress("sweeps without a group of items", left_out + 1, self.groups)
        rows = pd.concat(parts, ignore_index=True)
        summary = summarise(rows, plan.units_of(rows), plan.totals)
        return {_name(row): float(row["mean"]) for row in summary.to_dict("records")}

    def _batches(self, batching: Batching, kept: npt.NDArray[np.bool_]) -> Iterator[Batch]:
        first, second = kept[self.units.first], kept[self.units.second]
        for batch in batching.sampling.batches(self.embedded.relations):
            left = keep_items(batch, first, second)
            if left is not None:
                yield left


def _name(row: dict[Any, Any]) -> tuple[Any, ...]:
    values = (row[name] for name in (*_SAME, "statistic"))
    return tuple(None if value is None or value != value else value for value in values)
