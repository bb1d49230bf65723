"""Which difference could the tests of a comparison have found? The answer for those that found none."""

from __future__ import annotations

import math
from functools import cache

import pandas as pd

from .options import Design, Resampling
from .paired_tests import smallest_p
from .power import sd_interval, smallest_effect

COLUMNS = ("mdd_images", "mdd_seeds", "mdd_seeds_low", "mdd_seeds_high", "power", "alpha")


def detectable(rows: pd.DataFrame, resampling: Resampling) -> pd.DataFrame:
    """mdd = sd · smallest_effect(n, power 0.8, α / m): the minimum detectable difference of each comparison.

    α = 1 − level is divided by the m comparisons of the family, which is what Holm's method asks of the smallest p: a
    difference of this size is found whatever the others are. The result has COLUMNS; NaN where there is no spread, or
    where the resamples of the permutation test give no p as small as α / m.

    Args:
        rows: comparisons of one metric, with sd and number of images and of seeds, and their families.
        resampling: of the tests.
    """
    alpha = round(1 - resampling.level, 12)
    columns: list[tuple[float, ...]] = []
    tests = int(rows["p_t"].notna().sum())  # the family of the t-test
    for row in rows.to_dict("records"):
        images, seeds, level = int(row["images"]), int(row["n_seeds"]), alpha / max(int(row["family"]), 1)
        reachable = images >= 2 and smallest_p(images, resampling) <= level
        of_images = _mdd(row["sd_images"], images, level) if reachable else math.nan
        ends = sd_interval(row["sd_seeds"], seeds, resampling.level)
        of_seeds = [_mdd(sd, seeds, alpha / max(tests, 1)) for sd in (row["sd_seeds"], *ends)]
        columns.append((of_images, *of_seeds, Design.power, alpha))
    return pd.DataFrame(columns, columns=list(COLUMNS), index=rows.index)


def _mdd(sd: float, n: int, alpha: float) -> float:
    return sd * _effect(n, alpha) if n >= 2 and sd > 0 else math.nan


@cache
def _effect(n: int, alpha: float) -> float:
    return smallest_effect(n, Design(alpha=alpha))
