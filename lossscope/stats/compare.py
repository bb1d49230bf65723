"""Which of several systems is better, and could it be chance? Tests paired over images or queries, and over seeds."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from lossscope.errors import InputError

from .baseline import baseline_second, require_baseline
from .detectable import detectable
from .options import Resampling
from .paired_tests import ImageTest, SeedTest, Values, holm, images_test, seeds_test
from .pairing import Block, System, group_blocks, pair_seeds
from .per_image import Metric, metrics_of, parse_metric, per_image
from .superiority import Superiority, superiority

COLUMNS = (
    "data", "encoder", "system", "baseline", "statistic", "direction", "unit", "mean", "mean_baseline", "difference",
    "images", "sd_images", "ci_low", "ci_high", "p_images", "p_images_holm", "p_at_floor", "d_images", "mdd_images",
    "seeds", "n_seeds", "sd_seeds", "t_low", "t_high", "p_t", "p_t_holm", "p_flips", "p_flips_holm", "d_seeds",
    "mdd_seeds", "mdd_seeds_low", "mdd_seeds_high", "p_better", "p_better_low", "p_better_high", "family",
    "family_seeds", "best", "left_out", "note", "resamples", "seed", "level", "power", "alpha",
)  # fmt: skip
_CORRECTED = ("p_images", "p_t", "p_flips")  # columns of p that get a column `_holm`


@dataclass(frozen=True)
class _Pair:
    """Two systems of a block, compared on one metric."""

    block: Block
    metric: Metric
    a: System
    b: System  # the baseline
    best: str  # name of the best system of the block
    shown: bool  # whether the pair is a row of the result; others count in the family alone


def compare(
    queries: pd.DataFrame,
    metrics: Iterable[str] | None = None,
    baseline: str | None = None,
    all_pairs: bool = False,
    resampling: Resampling | None = None,
) -> pd.DataFrame:
    """Compare systems with a `baseline`, with the best of their block, or every system with every other.

    A system is one objective_label with one data and encoder, which make a block; its runs are its seeds. Systems of
    different blocks are not compared, and a block with one system has no row.

    The result has COLUMNS and one row per metric and pair:

    - difference = mean − mean_baseline, over the seeds that both systems have (`seeds`; `left_out` names the others). A
      pair without a common seed is a row of NaN, unless each system is a single run.
    - Over images (of other sides: queries), after averaging each over seeds: p_images of a paired permutation test,
      ci_low..ci_high of the bootstrap, d_images = d_z. p_at_floor: no resample was as extreme, so that p_images is the
      smallest that so many can give, and the true one is at most that.
    - Over seeds: p_t of a paired t-test with its interval t_low..t_high, p_flips of a sign-flip test, sd_seeds and
      d_seeds = d_z of the n_seeds differences; NaN with one seed.
    - mdd_images, mdd_seeds: smallest difference that the tests would find with probability `power` at level `alpha` /
      family, from the spread of the differences and never from their mean; mdd_seeds_low..mdd_seeds_high carries the
      uncertainty of sd_seeds. alpha is 1 − level.
    - p_better: share of the seeds in which the system is better than the baseline, a tie counting half;
      p_better_low..p_better_high is its exact binomial interval.
    - *_holm: corrected over the `family`, all comparisons of the metric in this call. The best system is chosen by
      comparing all systems, so that its family has every pair of the block, also those that are not shown.

    Args:
        queries: rows of `per_query` with the further columns run, data, encoder, objective_label, seed.
        metrics: names, as `parse_metric` reads them; None: the first of `metrics_of`, rsum of images and captions.
            Blocks that lack a metric have no row of it.
        baseline: name of the system that all others are compared with. None: the best of each block by mean; of two
            systems the first, so that B − A is stated whichever is better.
        all_pairs: compare every system with every other.
        resampling: of permutations and of the bootstrap; the defaults of Resampling where None.

    Raises:
        InputError: missing columns, systems with different queries, two runs of one seed, NaN ranks, no two systems
            with a common seed, an unknown metric or baseline, or nothing to compare.
    """
    resampling = resampling or Resampling()
    blocks = group_blocks(queries)
    if baseline is not None:
        require_baseline(blocks, baseline)
    parts = []
    known = metrics_of(queries)
    for metric in dict.fromkeys(parse_metric(name, known) for name in (known[:1] if metrics is None else metrics)):
        rows = [row for block in blocks for row in _compare_block(block, metric, baseline, all_pairs, resampling)]
        if not rows:
            raise InputError(f"comparing on {metric.name} takes at least two systems that have it; got one")
        parts.append(_correct(pd.DataFrame(rows), resampling))
    comparisons = pd.concat(parts, ignore_index=True)
    _require_common_seed(comparisons)
    return comparisons[comparisons.pop("shown")].reset_index(drop=True)[list(COLUMNS)]


def significance(frame: pd.DataFrame) -> pd.DataFrame:
    """Return p of each system against the best of its block, for the marks of a table.

    Columns: data, encoder, objective_label, statistic, direction, p_holm, baseline (the best), test. Two rows per
    system and metric: test `images` (paired permutation) and `seeds` (paired t-test; p_holm is NaN with one seed).

    Args:
        frame: result of `compare` with the best, or of all pairs.
    """
    with_best = frame[(frame["system"] == frame["best"]) | (frame["baseline"] == frame["best"])]
    label = with_best["system"].where(with_best["baseline"] == with_best["best"], with_best["baseline"])
    names = {"baseline": with_best["best"], "objective_label": label}
    columns = ["data", "encoder", "objective_label", "statistic", "direction", "p_holm", "baseline", "test"]
    tests = {"images": "p_images_holm", "seeds": "p_t_holm"}
    parts = [with_best.assign(**names, test=test, p_holm=with_best[column])[columns] for test, column in tests.items()]
    return pd.concat(parts, ignore_index=True)


def _compare_block(
    block: Block, metric: Metric, baseline: str | None, all_pairs: bool, resampling: Resampling
) -> list[dict[str, object]]:
    """Return a row for each pair of the block that is in the family."""
    if len(block.systems) < 2 or metric.name not in metrics_of(block.queries):
        return []
    values = per_image(block.queries, metric)
    best = max(block.systems, key=lambda system: float(values[list(system.runs.values())].to_numpy().mean()))
    reference = baseline or (block.systems[0] if len(block.systems) == 2 else best).name
    pairs = [
        _Pair(block, metric, *baseline_second(first, second, reference), best.name, shown)
        for first, second in combinations(block.systems, 2)
        for shown in [all_pairs or reference in (first.name, second.name)]
        if shown or baseline is None
    ]
    runs = [pair_seeds(pair.a, pair.b) for pair in pairs]
    by_image = [tuple(values[list(names)].to_numpy(float) for names in (paired.a, paired.b)) for paired in runs]
    differences = np.array([a.mean(1) - b.mean(1) for a, b in by_image if a.size])
    image_tests = iter(images_test(differences, resampling))
    rows = []
    for pair, paired, (a, b) in zip(pairs, runs, by_image, strict=True):
        images = next(image_tests) if a.size else ImageTest()
        seeds = seeds_test(a.mean(0), b.mean(0), resampling) if paired.same_seeds else SeedTest()
        better = superiority(a.mean(0), b.mean(0), resampling.level) if paired.same_seeds else Superiority()
        texts = {"seeds": paired.seeds, "left_out": paired.left_out, "note": paired.note(seeds)}
        rows.append({**_mean_columns(pair, a, b, resampling), **_test_columns(images, seeds, better), **texts})
    return rows


def _mean_columns(pair: _Pair, a: Values, b: Values, resampling: Resampling) -> dict[str, object]:
    return {
        "data": pair.block.data, "encoder": pair.block.encoder, "system": pair.a.name, "baseline": pair.b.name,
        "statistic": pair.metric.statistic, "direction": pair.metric.direction, "unit": pair.metric.unit,
        "mean": _mean(a), "mean_baseline": _mean(b), "difference": _mean(a) - _mean(b),
        "images": len(a), "best": pair.best, "shown": pair.shown,
        "resamples": resampling.resamples, "seed": resampling.seed, "level": resampling.level,
    }  # fmt: skip


def _mean(values: Values) -> float:
    return float(values.mean()) if values.size else math.nan


def _test_columns(images: ImageTest, seeds: SeedTest, better: Superiority) -> dict[str, object]:
    return {
        "p_images": images.p, "p_at_floor": images.p_at_floor, "ci_low": images.low, "ci_high": images.high,
        "d_images": images.d, "sd_images": images.sd,
        "n_seeds": seeds.n, "sd_seeds": seeds.sd, "t_low": seeds.low, "t_high": seeds.high, "p_t": seeds.p,
        "p_flips": seeds.flips, "d_seeds": seeds.d,
        "p_better": better.p, "p_better_low": better.low, "p_better_high": better.high,
    }  # fmt: skip


def _correct(rows: pd.DataFrame, resampling: Resampling) -> pd.DataFrame:
    """Add Holm's correction over the rows, which are those of one metric, and what its tests can detect."""
    corrected = {f"{name}_holm": holm(rows[name].to_numpy(float)) for name in _CORRECTED}
    sizes = {"family": int(rows["p_images"].notna().sum()), "family_seeds": int(rows["p_flips"].notna().sum())}
    rows = rows.assign(**corrected, **sizes)
    return pd.concat([rows, detectable(rows, resampling)], axis=1)


def _require_common_seed(rows: pd.DataFrame) -> None:
    if rows["p_images"].isna().all():
        pairs = "; ".join(f"{row['system']} and {row['baseline']}: {row['left_out']}" for _, row in rows.iterrows())
        raise InputError(f"systems must have a seed in common; got none. {pairs}. Train the missing seeds")


__all__ = ["COLUMNS", "Resampling", "compare", "significance"]
