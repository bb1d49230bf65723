"""Which of several systems is better, and could it be chance? Paired over images, and paired over seeds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from lossscope.errors import InputError

from .paired_tests import ImageTest, Resampling, SeedTest, Values, holm, images_test, seeds_test
from .pairing import Block, System, group_blocks, pair_seeds
from .per_image import METRICS, Metric, metric, per_image

COLUMNS = (
    "data", "encoder", "system", "baseline", "statistic", "direction", "unit", "mean", "mean_baseline", "difference",
    "images", "ci_low", "ci_high", "p_images", "p_images_holm", "d_images", "seeds", "n_seeds", "sd_seeds", "t_low",
    "t_high", "p_t", "p_t_holm", "p_flips", "p_flips_holm", "d_seeds", "family", "family_seeds", "best", "left_out",
    "note", "resamples", "seed", "level",
)  # fmt: skip
_CORRECTED = ("p_images", "p_t", "p_flips")


@dataclass(frozen=True)
class _Pair:
    """Two systems of a block on one metric: means over the seeds they share; shown: whether it is asked for."""

    block: Block
    what: Metric
    a: System
    b: System
    best: str
    shown: bool


def compare(
    queries: pd.DataFrame,
    metrics: Iterable[str] = ("rsum",),
    baseline: str | None = None,
    every: bool = False,
    chance: Resampling | None = None,
) -> pd.DataFrame:
    """Systems against the best of their block by mean, against a `baseline`, or every one against every other.

    queries: rows of `per_query` with columns run, data, encoder, objective_label, seed. A system is one objective_label with
    one data and encoder, which make a block; its runs are its seeds. Systems of different blocks are not compared,
    and a block with one system has no row.
    Columns, a row per metric and pair: difference = mean − mean_baseline, over the seeds that both have (`seeds`;
    `left_out` names others; a pair that shares none is a row of NaN, unless each is a single run).
    Over images, after averaging each image over seeds: p_images of a paired permutation test, ci_low..ci_high the
    bootstrap interval, d_images = d_z. Over seeds: p_t of a paired t-test with its interval t_low..t_high, p_flips by
    sign flips, sd_seeds and d_seeds = d_z of the n_seeds differences; NaN with one seed.
    *_holm: corrected over the `family`, all comparisons of the metric in this call. The best is found by looking at all
    systems, so that its family has every pair of the block, also those that are not shown.
    Raises InputError for frames that are not such, for systems with different queries, two runs of one seed, NaN ranks,
    no two systems with a common seed, an unknown metric or baseline, and when there is nothing to compare.
    """
    chance = chance or Resampling()
    blocks = group_blocks(queries)
    if baseline is not None:
        _require_baseline(blocks, baseline)
    parts = []
    for what in dict.fromkeys(metric(name) for name in metrics):
        rows = [row for block in blocks for row in _of_block(block, what, baseline, every, chance)]
        parts.append(_corrected(pd.DataFrame(rows)))
    found = pd.concat(parts, ignore_index=True)
    _require_some(found)
    return found[found.pop("shown")].reset_index(drop=True)[list(COLUMNS)]


def significance(frame: pd.DataFrame) -> pd.DataFrame:
    """Which cells differ from the best of their block: data, encoder, trained, statistic, direction, p_holm, against,
    test.

    frame: of `compare` against the best (or every pair). Two rows per system that is not the best, test `images`
    (paired permutation) and `seeds` (paired t-test); p_holm is NaN where there is one seed.
    """
    beside = frame[(frame["system"] == frame["best"]) | (frame["baseline"] == frame["best"])]
    trained = beside["system"].where(beside["baseline"] == beside["best"], beside["baseline"])
    told = {"baseline": beside["best"], "objective_label": trained}
    columns = ["data", "encoder", "objective_label", "statistic", "direction", "p_holm", "baseline", "test"]
    tests = {"images": "p_images_holm", "seeds": "p_t_holm"}
    parts = [beside.assign(**told, test=test, p_holm=beside[column])[columns] for test, column in tests.items()]
    return pd.concat(parts, ignore_index=True)


def _of_block(
    block: Block, what: Metric, baseline: str | None, every: bool, chance: Resampling
) -> list[dict[str, object]]:
    """A row per pair of the block that is in the family."""
    if len(block.systems) < 2:
        return []
    values = per_image(block.queries, what)
    best = max(block.systems, key=lambda system: float(values[list(system.runs.values())].to_numpy().mean()))
    pairs = [
        _Pair(block, what, *_ordered(one, other, baseline or best.name), best.name, shown)
        for one, other in combinations(block.systems, 2)
        for shown in [every or (baseline or best.name) in (one.name, other.name)]
        if shown or baseline is None
    ]
    runs = [pair_seeds(pair.a, pair.b) for pair in pairs]
    sides = [tuple(values[list(side)].to_numpy(float) for side in (one.a, one.b)) for one in runs]
    tested = iter(images_test(np.array([a.mean(1) - b.mean(1) for a, b in sides if a.size]), chance))
    found = []
    for pair, common, (a, b) in zip(pairs, runs, sides, strict=True):
        images = next(tested) if a.size else ImageTest()
        seeds = seeds_test(a.mean(0), b.mean(0), chance) if common.seeded else SeedTest()
        told = {"seeds": common.told, "left_out": common.left_out, "note": common.note(seeds)}
        found.append({**_row(pair, a, b, chance), **_tests(images, seeds), **told})
    return found


def _ordered(one: System, other: System, reference: str) -> tuple[System, System]:
    return (other, one) if one.name == reference else (one, other)


def _row(pair: _Pair, a: Values, b: Values, chance: Resampling) -> dict[str, object]:
    return {
        "data": pair.block.data, "encoder": pair.block.encoder, "system": pair.a.name, "baseline": pair.b.name,
        "statistic": pair.what.statistic, "direction": pair.what.direction, "unit": pair.what.unit,
        "mean": _mean(a), "mean_baseline": _mean(b), "difference": _mean(a) - _mean(b),
        "images": len(a), "best": pair.best, "shown": pair.shown,
        "resamples": chance.resamples, "seed": chance.seed, "level": chance.level,
    }  # fmt: skip


def _mean(values: Values) -> float:
    return float(values.mean()) if values.size else math.nan


def _tests(images: ImageTest, seeds: SeedTest) -> dict[str, object]:
    return {
        "p_images": images.p, "ci_low": images.low, "ci_high": images.high, "d_images": images.d,
        "n_seeds": seeds.n, "sd_seeds": seeds.sd, "t_low": seeds.low, "t_high": seeds.high, "p_t": seeds.p,
        "p_flips": seeds.flips, "d_seeds": seeds.d,
    }  # fmt: skip


def _corrected(rows: pd.DataFrame) -> pd.DataFrame:
    """With Holm's correction over the rows, which are those of one metric."""
    corrected = {f"{name}_holm": holm(rows[name].to_numpy(float)) for name in _CORRECTED}
    sizes = {"family": int(rows["p_images"].notna().sum()), "family_seeds": int(rows["p_flips"].notna().sum())}
    return rows.assign(**corrected, **sizes)


def _require_some(found: pd.DataFrame) -> None:
    if found["p_images"].isna().all():
        pairs = "; ".join(f"{row['system']} and {row['baseline']}: {row['left_out']}" for _, row in found.iterrows())
        raise InputError(f"systems must have a seed in common to be paired; got none. {pairs}. Train the missing seeds")


def _require_baseline(blocks: Sequence[Block], baseline: str) -> None:
    for block in blocks:
        names = [system.name for system in block.systems]
        if baseline not in names:
            raise InputError(f"baseline must be one of {', '.join(names)} ({block.told}); got {baseline!r}")


__all__ = ["COLUMNS", "METRICS", "Resampling", "compare", "significance"]
