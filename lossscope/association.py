"""Do models that count fewer samples retrieve better? Rank correlation of count and rsum over runs, with interval."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from .errors import InputError

COLUMNS = ("panel", "direction", "n", "tau", "low", "high", "verdict")
RESAMPLES = 9999
LEVEL = 0.95
FEWER, MORE, OPEN = "fewer, better", "more, better", "not decided"
_NEEDED = ("label", "panel", "direction", "seed", "count", "rsum")
_LEAST = 4  # runs below which nothing is said


def association(frame: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """Kendall's tau-b of count and rsum over the runs of each panel and direction, with a bootstrap interval.

    frame: columns label (loss), panel (model and data), direction, seed, count, rsum, a row per run. low, high: 95 %,
    percentiles of 9,999 resamples of runs, each loss keeping its number of runs. verdict: `fewer, better` where the
    interval is below 0, `more, better` above 0, else `not decided`, also with fewer than four runs or two losses.
    It is a statement about these losses and this training, not about all losses.
    Raises InputError for a frame without these columns.
    """
    missing = [name for name in _NEEDED if name not in frame]
    if missing:
        raise InputError(f"frame of counts must have the columns {', '.join(_NEEDED)}; missing {', '.join(missing)}")
    known = frame.dropna(subset=["count", "rsum"])
    rows = []
    for place, ((panel, direction), own) in enumerate(known.groupby(["panel", "direction"], sort=False, observed=True)):
        tau, low, high = _interval(own, np.random.default_rng([seed, place]))
        verdict = OPEN if math.isnan(low) or low <= 0 <= high else FEWER if high < 0 else MORE
        rows.append((panel, direction, len(own), tau, low, high, verdict))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def sentences(found: pd.DataFrame) -> tuple[str, str]:
    """Where fewer counted samples go with better recall, and where that is not so: one sentence each."""
    told = {name: _places(found[found["verdict"] == name]) for name in (FEWER, MORE, OPEN)}
    holds = f"Losses that count fewer samples retrieve better in {told[FEWER]}" if told[FEWER] else (
        "In no panel do losses that count fewer samples retrieve better beyond chance"
    )  # fmt: skip
    turns = f"It turns round in {told[MORE]}" if told[MORE] else "It turns round nowhere beyond chance"
    open_ = f"; the runs do not decide it in {told[OPEN]}" if told[OPEN] else ""
    return f"{holds}.", f"{turns}{open_}."


def _interval(runs: pd.DataFrame, dice: np.random.Generator) -> tuple[float, float, float]:
    count, rsum = runs["count"].to_numpy(float), runs["rsum"].to_numpy(float)
    groups = [np.flatnonzero(runs["label"].to_numpy() == label) for label in runs["label"].unique()]
    whole = float(taus(count[None], rsum[None])[0])
    if len(runs) < _LEAST or len(groups) < 2 or math.isnan(whole):
        return whole, math.nan, math.nan
    drawn = np.concatenate([dice.choice(group, (RESAMPLES, len(group))) for group in groups], axis=1)
    low, high = np.nanquantile(taus(count[drawn], rsum[drawn]), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return whole, float(low), float(high)


def taus(x: npt.NDArray[Any], y: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Kendall's tau-b of every row of x and y (r, n): (concordant − discordant) / √(pairs untied in x · in y).

    (r,); NaN where a row is constant. What scipy.stats.kendalltau gives, for ten thousand resamples at once.
    """
    a, b = np.triu_indices(x.shape[1], 1)
    signs_x, signs_y = np.sign(x[:, a] - x[:, b]), np.sign(y[:, a] - y[:, b])
    untied = np.abs(signs_x).sum(1) * np.abs(signs_y).sum(1)
    with np.errstate(invalid="ignore"):
        found: npt.NDArray[np.float64] = (signs_x * signs_y).sum(1) / np.sqrt(untied)
    return found


def _places(rows: pd.DataFrame) -> str:
    each = [
        f"{panel} ({', '.join(_told(row) for row in own.to_dict('records'))})"
        for panel, own in rows.groupby("panel", sort=False)
    ]
    return "; ".join(each)


def _told(row: Any) -> str:
    if math.isnan(row["tau"]):
        return f"{row['direction']}: not defined"
    if math.isnan(row["low"]):
        return f"{row['direction']}: tau {row['tau']:.2f}, {row['n']} runs"
    return f"{row['direction']}: tau {row['tau']:.2f}, {row['low']:.2f} to {row['high']:.2f}"
