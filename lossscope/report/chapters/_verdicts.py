"""May it be said that losses that count fewer samples retrieve better? What the verdicts say, in one sentence."""

from __future__ import annotations

import math

import pandas as pd

from lossscope.stats.rank_association import FEWER, FEWEST_RUNS, MORE, OPEN, TOO_FEW

_MEANINGS = {
    FEWER: "losses that count fewer samples retrieve better beyond the chance of training",
    MORE: "losses that count more samples retrieve better beyond the chance of training",
    OPEN: "the interval includes 0, so that the runs do not decide it",
    TOO_FEW: f"too few runs to tell ({FEWEST_RUNS} of each loss or more are needed)",
}
OF_TWO = "Of two losses no tau is given: it would say which of the two retrieves better, and nothing of counting."


def is_association(losses: int) -> bool:
    """Return whether tau of so many losses relates count and retrieval; two are one difference, and tau its sign."""
    return losses > 2


def verdict_sentence(rows: pd.DataFrame, score: str = "rsum") -> str:
    """Return what the verdicts say together; settings with one loss are left out.

    Args:
        rows: of `association`.
        score: that retrieval is judged by.
    """
    rows = rows[rows["losses"] > 1]
    if rows.empty:
        return "One loss says nothing."
    parts = []
    for name in _MEANINGS:
        judged = rows[rows["verdict"] == name]
        if len(judged):
            where = "" if len(judged) == len(rows) else f" in {_settings(judged)}"
            parts.append(f"{_MEANINGS[name]}{where}{_taus(judged, score)}")
    return f"{_capital('; '.join(parts))}."


def _settings(rows: pd.DataFrame) -> str:
    return "; ".join(f"{panel}, {direction}" for panel, direction in zip(rows["panel"], rows["direction"], strict=True))


def _taus(rows: pd.DataFrame, score: str) -> str:
    taus = rows.loc[rows["losses"].map(is_association), "tau"]
    low, high = taus.min(), taus.max()
    if math.isnan(low):
        return ""
    span = f"{low:.2f}" if f"{low:.2f}" == f"{high:.2f}" else f"{low:.2f} to {high:.2f}"
    return f": Kendall's tau between count and {score} is {span}".replace("-", "−")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
