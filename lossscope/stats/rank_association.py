"""Do losses that count fewer samples retrieve better? How often two runs of different losses are ordered so."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from lossscope.errors import InputError

COLUMNS = ("panel", "direction", "losses", "n", "tau", "low", "high", "verdict")
RESAMPLES = 9999
LEVEL = 0.95
FEWER, MORE, OPEN = "fewer, better", "more, better", "not decided"
_NEEDED = ("label", "panel", "direction", "seed", "count", "rsum")
_LEAST = 3  # runs of every loss, below which too little is known of chance


def association(frame: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """τ = mean of sign(count_a − count_b) · sign(rsum_a − rsum_b) over pairs of runs of different losses.

    −1: whichever counts fewer retrieves better, always; +1: the other way round (Kendall's tau-a between groups).
    frame: columns label (loss), panel (model and data), direction, seed, count, rsum, a row per run. low, high: 95 %
    percentiles of 9,999 bootstrap resamples of the runs of each loss: what other trainings of these very losses would
    give; of other losses it says nothing. verdict: `fewer, better` where the interval is below 0, `more, better` above
    0, else `not decided`, also where a loss has fewer than three runs.
    Raises InputError for a frame without these columns.
    """
    missing = [name for name in _NEEDED if name not in frame]
    if missing:
        raise InputError(f"frame of counts must have the columns {', '.join(_NEEDED)}; missing {', '.join(missing)}")
    known, rows = frame.dropna(subset=["count", "rsum"]), []
    for place, ((panel, direction), own) in enumerate(known.groupby(["panel", "direction"], sort=False, observed=True)):
        tau, low, high = _interval(own, np.random.default_rng([seed, place]))
        verdict = OPEN if math.isnan(low) or low <= 0 <= high else FEWER if high < 0 else MORE
        rows.append((panel, direction, own["label"].nunique(), len(own), tau, low, high, verdict))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def sentences(found: pd.DataFrame) -> tuple[str, str]:
    """Of these losses: where those that count fewer samples retrieve better, where not. One sentence each."""
    most = int(found["losses"].max()) if len(found) else 0
    told = {name: _places(found[found["verdict"] == name]) for name in (FEWER, MORE, OPEN)}
    holds = f"Of these {most} losses, those that count fewer samples retrieve better beyond the chance of training "
    holds += f"in {told[FEWER]}" if told[FEWER] else "nowhere"
    turns = f"It turns round in {told[MORE]}" if told[MORE] else "It turns round nowhere beyond the chance of training"
    return f"{holds}.", f"{turns}{f'; the runs do not decide it in {told[OPEN]}' if told[OPEN] else ''}."


def taus(count: npt.NDArray[Any], rsum: npt.NDArray[Any], groups: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """τ of every row of count and rsum (r, n), groups (n,) telling which loss a column is of; NaN with one loss."""
    a, b = np.triu_indices(len(groups), 1)
    other = groups[a] != groups[b]
    a, b = a[other], b[other]
    if not len(a):
        return np.full(len(count), np.nan)
    signs = np.sign(count[:, a] - count[:, b]) * np.sign(rsum[:, a] - rsum[:, b])
    found: npt.NDArray[np.float64] = signs.mean(1)
    return found


def _interval(runs: pd.DataFrame, dice: np.random.Generator) -> tuple[float, float, float]:
    count, rsum = runs["count"].to_numpy(float), runs["rsum"].to_numpy(float)
    groups = pd.factorize(runs["label"])[0]
    whole = float(taus(count[None], rsum[None], groups)[0])
    places = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    if math.isnan(whole) or min(map(len, places)) < _LEAST:
        return whole, math.nan, math.nan
    drawn = np.concatenate([dice.choice(own, (RESAMPLES, len(own))) for own in places], axis=1)
    some = taus(count[drawn], rsum[drawn], groups[np.concatenate(places)])
    low, high = np.quantile(some, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return whole, float(low), float(high)


def _places(rows: pd.DataFrame) -> str:
    each = [
        f"{panel} ({', '.join(_told(row) for row in own.to_dict('records'))})"
        for panel, own in rows.groupby("panel", sort=False)
    ]
    return "; ".join(each)


def _told(row: Any) -> str:
    if math.isnan(row["tau"]):
        return f"{row['direction']}: one loss"
    if math.isnan(row["low"]):
        return f"{row['direction']}: tau {row['tau']:.2f}, {row['n']} runs"
    return f"{row['direction']}: tau {row['tau']:.2f}, {row['low']:.2f} to {row['high']:.2f}"
