"""Two sides on the same batches -> differences: two models, or a model under two objectives, thresholds or modes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import pandas as pd

from lossscope.core.distributed import ProcessGroup
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.float32_products import float32_products
from lossscope.core.intervals import Floats
from lossscope.core.sampling_units import SamplingUnits
from lossscope.core.types import CountedDirection, Progress
from lossscope.errors import InputError
from lossscope.io.frames import KEYS, further_columns, summarise
from lossscope.objectives.base import Objective
from lossscope.probes.base import Probe

from .batch_runner import BatchRunner, PartRows
from .item_sums import IntervalCollector
from .paired_items import require_same_items
from .paired_sums import PairedSums, paired_sums
from .plan import Batching, SweepPlan
from .sweep import Sweep
from .sweep_intervals import SweepIntervals, name_of
from .workers import number_of_jobs

DIFFERENCE = (
    "source", "b_source", "objective", "b_objective", "direction", "probe", "statistic", "mean", "b_mean", "difference",
    "low", "high", "level", "method", "n", "unit", "weight_unit", "convention", "eps", "b_eps", "batch_size",
    "sampling", "seed",
)  # fmt: skip
_NAMED = 6  # statistics without an interval that a message names, at most
EQUAL = "equal"  # method of a difference that is 0 in every batch and for every query
NumberKey = tuple[str, str | None, str | None, str]  # probe, objectives of both sides, column of single queries
_Key = tuple[Hashable, ...]
_Part = tuple[BatchRunner, PartRows]  # of a way of batching, for one side
_Statistics = dict[_Key, tuple[Mapping[Any, Any], Floats]]  # row of the summary, and the number of each batch


@dataclass(frozen=True)
class PairedResult:
    """The differences of two sides."""

    rows: pd.DataFrame  # columns DIFFERENCE
    queries: tuple[pd.DataFrame, pd.DataFrame]  # rows of single queries of both sides, in the same order
    left_out: tuple[str, ...]  # statistics that only one side has, and the reason
    without_interval: str | None = None  # differences without an interval, and the reason
    other_numbers: frozenset[NumberKey] = frozenset()  # columns that both objectives average in different statistics


@dataclass(frozen=True)
class PairedSweep:
    """A sweep of A and a sweep of B over the same batches, masks and sample of queries.

    Objectives and probes are paired in their order. Both sides have the same options of batches, the same seed and the
    same unit of weights.
    """

    first: Sweep
    second: Sweep

    def __post_init__(self) -> None:
        a, b = self.first, self.second
        if len(a.objectives) != len(b.objectives) or len(a.probes) != len(b.probes):
            raise InputError(
                f"both sides must have as many objectives; got {len(a.objectives)} and {len(b.objectives)}. Name one "
                "of B for each of A"
            )
        if a.is_sample or b.is_sample:
            raise InputError("differences need all queries; a sample lacks some. Leave --queries out")
        object.__setattr__(self, "first", a.beside(b.plan.objectives))
        object.__setattr__(self, "second", b.beside(a.plan.objectives))

    @float32_products()
    def run(
        self,
        a: SplitEmbeddings,
        b: SplitEmbeddings,
        progress: Progress | None = None,
        processes: ProcessGroup | None = None,
        jobs: int | None = None,
    ) -> PairedResult:
        """Return the difference B − A of every statistic that both sides have.

        Args:
            a: the split under the model of A.
            b: the same items, in the same order.
            progress: called with (label, done, of).
            processes: processes that share the work; each calls this method.
            jobs: threads that share the work, see `Sweep.run`.

        Raises:
            InputError: the items differ, the options do not fit, or the objectives take different batches.
        """
        require_same_items(a, b)
        processes = processes or ProcessGroup()
        plans = self.first.plan_for(a), self.second.plan_for(b)
        units: SamplingUnits | None = SamplingUnits.of(a.relations)
        refusal = None if self.first.interval is None or units is None else units.refusal
        if self.first.interval is None or refusal is not None:
            units = None
        sides: tuple[list[_Part], list[_Part]] = [], []
        sums: dict[_Key, PairedSums] = {}
        other_numbers: set[NumberKey] = set()
        jobs = number_of_jobs(jobs)
        with plans[0].workers(a, jobs) as of_first, plans[1].workers(b, jobs) as of_second:
            for batching, other in _same_batches(*plans):
                runner = BatchRunner(plans[0], batching, a, processes, progress, None, units, of_first)
                of_b = BatchRunner(plans[1], other, b, processes, progress, None, units, of_second)
                other_numbers |= _other_numbers(runner, of_b)
                batches = list(batching.sampling.batches(a.relations))
                if not batches:
                    raise InputError(
                        f"batches must fit the split; {a.name} has fewer items than --batch-size. Use a smaller one, "
                        "or --keep-last"
                    )
                first, second = runner.run(batches), of_b.run(batches)
                sides[0].append((runner, first))
                sides[1].append((of_b, second))
                if first.collector is not None and second.collector is not None:
                    sums |= _sums_of(runner, of_b, first.collector, second.collector, processes)
        intervals = None if units is None or self.first.interval is None else SweepIntervals(units, self.first.interval)
        rows, left_out = _rows(_statistics(sides[0], plans[0]), _statistics(sides[1], plans[1]), sums, intervals)
        if units is not None:
            refusal = _lacking(rows)
        queries = _queries(sides[0]), _queries(sides[1])
        return PairedResult(rows, queries, left_out, refusal, frozenset(other_numbers))


def _same_batches(first: SweepPlan, second: SweepPlan) -> list[tuple[Batching, Batching]]:
    """Return the batchings of both sides. Raises InputError if the objectives take different batches."""
    ways = [[(batching.sampling, len(batching.objectives)) for batching in plan.batchings] for plan in (first, second)]
    if ways[0] != ways[1]:
        modes = [" and ".join(batching.sampling.mode for batching in plan.batchings) for plan in (first, second)]
        raise InputError(
            f"both sides must take the same batches; their objectives take {modes[0]} and {modes[1]}. Take --sampling "
            "that both can have, or other objectives"
        )
    return list(zip(first.batchings, second.batchings, strict=True))


def _sums_of(
    a: BatchRunner, b: BatchRunner, first: IntervalCollector, second: IntervalCollector, processes: ProcessGroup
) -> dict[_Key, PairedSums]:
    """Return the sums of differences by index of the pair in the plan, direction and statistic."""
    stacks = [
        [stack for of_process in processes.gather(collector.stacks) for stack in of_process]
        for collector in (first, second)
    ]
    named: dict[_Key, PairedSums] = {}
    if processes.main:
        groups = first.groups(stacks[0]), second.groups(stacks[1])
        of_b = {
            _pair_key(b, probe, objective, direction): group
            for (probe, objective, direction), group in groups[1].items()
        }
        for (probe, objective, direction), group in groups[0].items():
            key = _pair_key(a, probe, objective, direction)
            if key in of_b:
                for statistic, difference in paired_sums(first, group, of_b[key]).items():
                    named[*key, a.plan.name_of(statistic)] = difference
    return processes.gather(named)[0]


def _other_numbers(a: BatchRunner, b: BatchRunner) -> set[NumberKey]:
    """Return the numbers of single queries that both sides average, but never in the same statistic."""
    numbers: set[NumberKey] = set()
    of_b = {_pair_key(b, probe, objective, "i2t"): (objective, probe) for objective, probe in b.probe_plan.pairs}
    for objective, probe in a.probe_plan.pairs:
        key = _pair_key(a, probe, objective, "i2t")
        if objective is None or key not in of_b:
            continue
        b_objective, b_probe = of_b[key]
        means = [_means(probe, objective), _means(b_probe, b_objective)]
        keys = [
            side.key_of(counted, loss, "i2t")
            for side, counted, loss in ((a, probe, objective), (b, b_probe, b_objective))
        ]
        for column in means[0].keys() & means[1].keys():
            if not means[0][column] & means[1][column]:
                numbers.add((keys[0]["probe"], keys[0]["objective"], keys[1]["objective"], column))
    return numbers


def _means(probe: Probe, objective: Objective | None) -> dict[str, set[str]]:
    """Return column of a probe -> statistics that average the column."""
    means: dict[str, set[str]] = {}
    for statistic in probe.statistics(objective):
        if statistic.reducer in ("mean", "mean_nonzero"):
            means.setdefault(statistic.column, set()).add(statistic.name)
    return means


def _queries(side: list[_Part]) -> pd.DataFrame:
    """Return the rows of single queries of one side."""
    parts = [part.queries for _, part in side if len(part.queries)]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _pair_key(runner: BatchRunner, probe: Any, objective: Any, direction: Any) -> _Key:
    """Return the key that pairs results of both sides: mode of batches, indices of objective and probe, direction."""
    index = None if objective is None else runner.batching.objectives.index(objective)
    return runner.batching.sampling.mode, index, runner.plan.probes.index(probe), runner.label_of(direction)


def _statistics(side: list[_Part], plan: SweepPlan) -> _Statistics:
    """Return the statistics of a side by objective and probe, direction and name."""
    statistics: _Statistics = {}
    for runner, part in side:
        keys: dict[str, _Key] = {}
        for objective, probe in runner.probe_plan.pairs:
            for direction in get_args(CountedDirection):
                key = {**runner.key_of(probe, objective, direction), "batch_size": None}
                keys[name_of(key, "")] = _pair_key(runner, probe, objective, direction)
        names = [*KEYS, *further_columns(part.batches)]
        for _, of_name in part.batches.groupby(names, dropna=False, sort=False, observed=True):
            key_of_name = keys[_name(of_name)]
            for row in summarise(of_name, plan.units_of(of_name), plan.totals).to_dict("records"):
                statistics[(*key_of_name, str(row["statistic"]))] = row, of_name[row["statistic"]].to_numpy(dtype=float)
    return statistics


def _name(rows: pd.DataFrame) -> str:
    """Return the name of a result from its rows, without the batch size."""
    first: dict[Any, Any] = rows[list(KEYS)].iloc[0].to_dict()
    return name_of({**first, "batch_size": None}, "")


def _rows(
    a: _Statistics, b: _Statistics, sums: Mapping[_Key, PairedSums], intervals: SweepIntervals | None
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return a row per statistic that both sides have, and the other statistics with the reason."""
    rows, other_units = [], []
    for key, (of_a, batches_a) in a.items():
        if key not in b:
            continue
        of_b, batches_b = b[key]
        if of_a["unit"] != of_b["unit"] or _text(of_a["weight_unit"]) != _text(of_b["weight_unit"]):
            other_units.append(key)
            continue
        difference = float(of_b["mean"]) - float(of_a["mean"])
        row = {**of_a, "b_mean": of_b["mean"], "difference": difference}
        row |= {f"b_{name}": of_b[name] for name in ("source", "objective", "eps")}
        rows.append({**row, **_interval_columns(sums.get(key), difference, batches_a, batches_b, intervals)})
    missing = [("only A has", [key for key in a if key not in b]), ("only B has", [key for key in b if key not in a]),
               ("A and B have in different units", other_units)]  # fmt: skip
    left_out = tuple(
        f"{', '.join(dict.fromkeys(str(key[-1]) for key in keys))}: {reason}" for reason, keys in missing if keys
    )
    return pd.DataFrame(rows, columns=[*DIFFERENCE, *further_columns(*rows)]), left_out


def _interval_columns(
    sums: PairedSums | None, difference: float, a: Floats, b: Floats, intervals: SweepIntervals | None
) -> dict[str, Any]:
    """Return the columns of the interval of a difference; the method is `equal` if nothing differs."""
    if np.array_equal(a, b, equal_nan=True) and (sums is None or sums.is_equal):
        return {"method": EQUAL}
    if sums is None or intervals is None or not np.isfinite(difference):
        return {}
    low, high = sums.sums.interval(difference, intervals.level)
    if not np.isfinite(low):
        return {}
    return {"low": low, "high": high, "level": intervals.level, "method": f"paired, {intervals.method}"}


def _lacking(rows: pd.DataFrame) -> str | None:
    """Return which differences have no interval, and why; None if each has an interval or is equal on both sides."""
    names = list(rows.loc[rows["method"].isna() & rows["difference"].notna(), "statistic"].unique())
    if not names:
        return None
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return (
        f"{', '.join(names[:_NAMED])}{more}: an interval takes means over queries that differ, and what each candidate "
        "adds to them"
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
