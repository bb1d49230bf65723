"""What can n seeds, or n images, show? Smallest detectable differences from the spread of runs that were trained."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import pandas as pd

from lossscope.core.types import Progress
from lossscope.errors import InputError

from .baseline import require_baseline
from .options import PlanOptions, Resampling
from .pairing import group_blocks
from .per_image import parse_metric
from .pilot_values import PilotPair, PilotValues, known_metrics, measured_pairs
from .power import pairs_needed, smallest_effect
from .spread import NO_SPREAD, Spread, spread_of_images, spread_of_seeds
from .superiority import Superiority, superiority

COLUMNS = (
    "data", "encoder", "system", "baseline", "statistic", "direction", "unit", "over", "pilot_n", "pilot_seeds",
    "pilot_difference", "sd", "sd_low", "sd_high", "level", "method", "n", "mdd", "mdd_low", "mdd_high", "difference",
    "needed", "needed_low", "needed_high", "p_better", "p_better_low", "p_better_high", "power", "alpha", "left_out",
    "note",
)  # fmt: skip
SEEDS = "seeds"  # what a spread is over, where it is not over images or queries
_WHOLE = ("pilot_n", "n", "needed", "needed_low", "needed_high")  # columns of whole numbers, which may be missing


def plan(
    queries: pd.DataFrame,
    metrics: Iterable[str] | None = None,
    baseline: str | None = None,
    options: PlanOptions | None = None,
    resampling: Resampling | None = None,
    progress: Progress | None = None,
    counts: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """mdd = sd · smallest_effect(n): the smallest difference that n seeds, or n images, can show, of every pair.

    The result has COLUMNS and a row per metric, pair of systems, `over` (seeds, images or queries) and n:

    - sd: of the paired differences of the pilot runs, `pilot_n` of them; sd_low..sd_high by `method`. Over images
      differences are means over the `pilot_seeds` seeds that both systems have, so that mdd is for as many.
    - mdd: of a two-sided paired t-test with `power` at level `alpha`; mdd_low..mdd_high at both ends of sd.
    - needed: seeds, or images, that show `difference`; needed_low..needed_high at both ends of sd.
    - p_better: of `superiority`, in rows over seeds.

    Nothing but pilot_difference and p_better depends on the mean of the pilot's differences.

    Args:
        queries: as of `compare`.
        metrics: of `known_metrics`; None: the first of them.
        baseline: name of the system that all others are paired with; None: every system with every other.
        options: numbers of seeds and images, difference, power and level.
        resampling: of the bootstrap over images; its level is that of all intervals.
        progress: called with (label, done, of).
        counts: summary rows of the runs, with a column `run`: their counts are metrics too, over seeds alone.

    Raises:
        InputError: as of `compare`, or no two systems have two seeds in common.
    """
    options, resampling = options or PlanOptions(), resampling or Resampling(resamples=1999)
    blocks = [block for block in group_blocks(queries) if len(block.systems) > 1]
    if baseline is not None:
        require_baseline(blocks, baseline)
    known = known_metrics(queries, counts)
    names = list(known[:1] if metrics is None else dict.fromkeys(metrics))
    for name in names:
        parse_metric(name, known)
    measured = [found for name in names for found in measured_pairs(name, blocks, baseline, counts)]
    _require_spread([pair for _, pair in measured])
    rows: list[dict[str, object]] = []
    for done, (values, pair) in enumerate(measured):
        rows += _pair_rows(pair, values, options, resampling)
        if progress:
            progress("spread of differences", done + 1, len(measured))
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(dict.fromkeys(_WHOLE, "Int64"))


def _require_spread(pairs: Sequence[PilotPair]) -> None:
    if not any(pair.runs.same_seeds and len(pair.runs.a) > 1 for pair in pairs):
        got = "; ".join(f"{pair.a.name} and {pair.b.name}: {pair.runs.seeds or 'none'}" for pair in pairs[:3])
        raise InputError(
            "a spread over seeds takes two systems with at least two seeds in common, and three or more for "
            f"a useful answer; got {got}. Add seeds to the study, and run it again"
        )


def _pair_rows(
    pair: PilotPair, values: PilotValues, options: PlanOptions, resampling: Resampling
) -> list[dict[str, object]]:
    """Return the rows of a pair: over seeds, then over images or queries where the metric has them."""
    a, b = (values.values[list(names)].to_numpy(float) for names in (pair.runs.a, pair.runs.b))
    of_seeds, better = NO_SPREAD, Superiority()
    if pair.runs.same_seeds:
        of_seeds = spread_of_seeds(a.mean(0), b.mean(0), resampling.level)
        better = superiority(a.mean(0), b.mean(0), resampling.level)
    parts = [(SEEDS, of_seeds, better, list(options.seeds))]
    if values.over is not None:
        of_images = spread_of_images(a.mean(1) - b.mean(1), values.over, resampling) if a.size else NO_SPREAD
        parts.append(
            (values.over, of_images, Superiority(), sorted({*options.images, *([len(a)] if len(a) > 1 else [])}))
        )
    common = {
        "data": pair.block.data, "encoder": pair.block.encoder, "system": pair.a.name, "baseline": pair.b.name,
        "statistic": values.statistic, "direction": values.direction, "unit": values.unit,
        "pilot_seeds": pair.runs.seeds, "pilot_difference": float(a.mean() - b.mean()) if a.size else math.nan,
        "left_out": pair.runs.left_out, "level": resampling.level,
    }  # fmt: skip
    rows = []
    for over, spread, probability, numbers in parts:
        known = {
            "over": over, "pilot_n": spread.n, "sd": spread.sd, "sd_low": spread.low, "sd_high": spread.high,
            "method": spread.method, "p_better": probability.p,
            "p_better_low": probability.low, "p_better_high": probability.high,
            "note": spread.note or _reason(pair, over),
        }  # fmt: skip
        rows += [{**common, **known, "n": n, **_detectable(spread, n, options)} for n in numbers]
    return rows


def _reason(pair: PilotPair, over: str) -> str:
    """Return why nothing is known of a pair; empty where something is."""
    if not pair.runs.a:
        return "no common seed: not compared"
    return "" if over != SEEDS or pair.runs.same_seeds else "no common seed: seed variance unknown"


def _detectable(spread: Spread, n: int, options: PlanOptions) -> dict[str, object]:
    """Return what n pairs can show, and how many pairs show the difference that is asked for."""
    wanted, ends = options.difference, {"": spread.sd, "_low": spread.low, "_high": spread.high}
    effect = smallest_effect(n, options.design)
    needed = {end: pairs_needed(wanted / sd, options.design) if wanted and sd > 0 else None for end, sd in ends.items()}
    return {
        **{f"mdd{end}": sd * effect if sd > 0 else math.nan for end, sd in ends.items()},
        "difference": math.nan if wanted is None else wanted,
        **{f"needed{end}": number for end, number in needed.items()},
        "power": options.design.power, "alpha": options.design.alpha,
    }  # fmt: skip
