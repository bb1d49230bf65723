"""Do losses that count fewer samples retrieve better? Kendall's tau over pairs of runs of different losses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from lossscope.io.frames import require_columns
from lossscope.io.scores import as_rsum

COLUMNS = ("panel", "direction", "losses", "n", "tau", "low", "high", "verdict")
RESAMPLES = 9999
LEVEL = 0.95
FEWER, MORE, OPEN, TOO_FEW = "fewer, better", "more, better", "not decided", "too few runs to tell"
_REQUIRED = ("label", "panel", "direction", "seed", "count", "rsum")
FEWEST_RUNS = 5  # of every loss; resamples of fewer are so few that their interval may be one point


def association(frame: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """τ = mean of sign(count_a − count_b) · sign(rsum_a − rsum_b) over pairs of runs of different losses.

    −1: the run that counts fewer always retrieves better; +1: always worse (Kendall's tau-a between groups). The result
    has COLUMNS, a row per panel and direction:

    - low, high: 95 % percentiles of 9,999 bootstrap resamples of the runs of each loss: the variation over other
      trainings of the same losses, not over other losses.
    - verdict: `fewer, better` where the interval is below 0, `more, better` where it is above 0, else `not decided`;
      `too few runs to tell` where a loss has fewer than five runs: it gets no interval.

    Args:
        frame: columns label (loss), panel (model and data), direction, seed, count, rsum or nDCG@10, a row per run.
        seed: of the bootstrap.

    Raises:
        InputError: the frame lacks one of these columns.
    """
    frame = as_rsum(frame)
    require_columns(frame, _REQUIRED, "frame of counts")
    complete, rows = frame.dropna(subset=["count", "rsum"]), []
    groups = complete.groupby(["panel", "direction"], sort=False, observed=True)
    for number, ((panel, direction), runs) in enumerate(groups):
        tau, low, high = _interval(runs, np.random.default_rng([seed, number]))
        verdict = TOO_FEW if math.isnan(low) else OPEN if low <= 0 <= high else FEWER if high < 0 else MORE
        rows.append((panel, direction, runs["label"].nunique(), len(runs), tau, low, high, verdict))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def taus(count: npt.NDArray[Any], rsum: npt.NDArray[Any], groups: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return τ (r,) of each row of count and rsum (r, n); groups (n,) numbers the losses; NaN with one loss."""
    a, b = np.triu_indices(len(groups), 1)
    of_different_losses = groups[a] != groups[b]
    a, b = a[of_different_losses], b[of_different_losses]
    if not len(a):
        return np.full(len(count), np.nan)
    signs = np.sign(count[:, a] - count[:, b]) * np.sign(rsum[:, a] - rsum[:, b])
    means: npt.NDArray[np.float64] = signs.mean(1)
    return means


def _interval(runs: pd.DataFrame, rng: np.random.Generator) -> tuple[float, float, float]:
    """Return τ of the runs and its bootstrap interval; the interval is NaN where a loss has too few runs."""
    count, rsum = runs["count"].to_numpy(float), runs["rsum"].to_numpy(float)
    groups = pd.factorize(runs["label"])[0]
    tau = float(taus(count[None], rsum[None], groups)[0])
    runs_of_loss = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    if math.isnan(tau) or min(map(len, runs_of_loss)) < FEWEST_RUNS:
        return tau, math.nan, math.nan
    samples = np.concatenate([rng.choice(values, (RESAMPLES, len(values))) for values in runs_of_loss], axis=1)
    resampled = taus(count[samples], rsum[samples], groups[np.concatenate(runs_of_loss)])
    low, high = np.quantile(resampled, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return tau, float(low), float(high)
