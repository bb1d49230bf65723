"""How many negatives match, counted from answers to pairs drawn by strata of the score? Which pair comes next?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import expit, log_expit, logsumexp

from lossscope.core.types import Rows

from .calibration import Doubles, interval
from .rates import Estimate

EDGES = (0, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0)  # ranks of the score, as shares of all pairs
LEAST_PAIRS = 10  # of a stratum; a smaller one joins the next
FIRST_ROUND = 3  # answers of each stratum before the interval can be precise
LOWEST, STEP, NUMBER = -16.0, 1 / 3, 67  # grid of log-odds: -16 to 6
LOWEST_AT_TOP = 18  # step of the grid: the log-odds of the first stratum are at least -10
FALLS = (0.05, 0.25, 1.0, 4.0)  # mean fall of the log-odds from a stratum to the next; equally probable
DRAWS = 2000
RARE = 0.001  # share of false negatives; below it masks gained nothing (docs/audit.md)


@dataclass(frozen=True)
class Stratum:
    """Negatives whose scores have neighbouring ranks, and the answers to pairs drawn at random from them."""

    share: float  # of all negatives
    answers: int = 0  # yes or no
    yes: int = 0


@dataclass(frozen=True)
class Counted:
    """The rate by answers alone, without a model of the signals."""

    rate: Estimate
    answers: int
    yes: int
    is_in_order: bool  # whether the order of scores allows the estimate


def split_by_score(score: Doubles) -> list[Rows]:
    """Return the rows of each stratum, the highest scores first; ties are split in the order of rows.

    Args:
        score: (n,) of all pairs; only its order counts.
    """
    order = np.lexsort((np.arange(len(score)), -score))
    ends: list[int] = []
    for edge in EDGES[1:]:
        end = int(edge * len(order))
        if end - (ends[-1] if ends else 0) >= LEAST_PAIRS and len(order) - end >= LEAST_PAIRS:
            ends.append(end)
    return [part for part in np.split(order, ends) if len(part)]


def counted_rate(strata: Sequence[Stratum]) -> Counted | None:
    """Return Σ share · yes / answers over strata, and its interval; None where a stratum has no answer.

    Copies match for certain; no stratum holds them. The rate is unbiased, as answers do not decide how many questions
    a stratum gets (`next_stratum`). The interval is the middle 95 % of the posterior, see `draw_rates`, widened to hold
    the estimate.

    Source: Horvitz & Thompson 1952, of strata.
    """
    if not strata or any(stratum.answers == 0 for stratum in strata):
        return None
    copies = share_of_copies(strata)
    value = copies + sum(stratum.share * stratum.yes / stratum.answers for stratum in strata)
    low, high = interval(copies + draw_rates(strata) @ [stratum.share for stratum in strata])
    rate = Estimate(value, min(low, value), min(max(high, value), 1.0))
    answers, yes = (sum(numbers) for numbers in zip(*((part.answers, part.yes) for part in strata), strict=True))
    return Counted(rate, answers, yes, is_in_order=value <= high)


def share_of_copies(strata: Sequence[Stratum]) -> float:
    """Return 1 − Σ share, or 0 below a millionth, which is the rounding of shares."""
    rest = 1 - sum(stratum.share for stratum in strata)
    return rest if rest > 1e-6 else 0.0


def draw_rates(strata: Sequence[Stratum]) -> Doubles:
    """Return draws of the rate of each stratum, (m, strata), given the answers.

    Prior: log-odds do not rise from a stratum to the next, whose scores are lower. Each fall is exponential, with a
    mean of `FALLS`; under the smallest mean the score says nothing. On a grid of log-odds the posterior is exact.
    Points that fill the cube evenly replace random numbers: the same answers give the same draws.

    Source: draws run forwards after messages backwards (Carter & Kohn 1994); points of Roberts 2018 (R sequence).
    """
    likelihood = np.stack([_log_likelihood(stratum) for stratum in strata])
    count = len(strata)
    later = np.zeros((len(FALLS), count, NUMBER))  # log-likelihood of later strata, given the log-odds of this stratum
    for k in range(count - 2, -1, -1):
        later[:, k] = logsumexp(_log_falls() + (likelihood[k + 1] + later[:, k + 1])[:, None], axis=2)
    start = np.where(np.arange(NUMBER) >= LOWEST_AT_TOP, likelihood[0] + later[:, 0], -np.inf)
    evidence = logsumexp(start, axis=1)
    points = _points(count + 1)
    fall = _pick(_cumulate(evidence)[None], points[:, 0])[0]
    rates = np.empty((DRAWS, count))
    at = np.zeros(DRAWS, np.int64)
    for k in range(count):
        if k == 0:
            table = _cumulate(start)[fall]
        else:
            table = _cumulate(_log_falls() + (likelihood[k] + later[:, k])[:, None])[fall, at]
        at, inside = _pick(table, points[:, k + 1])
        rates[:, k] = expit(LOWEST + STEP * (at + inside - 0.5))
    return rates


def next_stratum(strata: Sequence[Stratum], is_open: Sequence[bool]) -> int | None:
    """Return the stratum of the next question: the fewest answers, then the highest scores; None where none is open.

    The number of answers decides, not what they are. When answers decided, a stratum was left as soon as a match turned
    up, and the counted rate was a quarter too high (scenes of ambiguity 0.4, 200 sheets of 60 labels).

    Args:
        strata: with the answers so far.
        is_open: whether the stratum has a pair left to ask about.
    """
    numbers = [k for k, left in enumerate(is_open) if left]
    return min(numbers, key=lambda k: strata[k].answers, default=None)


def _log_likelihood(stratum: Stratum) -> Doubles:
    """(grid,) log-probability of the answers."""
    odds = LOWEST + STEP * np.arange(NUMBER)
    values: Doubles = stratum.yes * log_expit(odds) + (stratum.answers - stratum.yes) * log_expit(-odds)
    return values


@cache
def _log_falls() -> Doubles:
    """(falls, grid, grid) log-probability of the next stratum's log-odds; values below the grid go to its end."""
    tables = np.full((len(FALLS), NUMBER, NUMBER), -np.inf)
    for k, mean in enumerate(FALLS):
        for start in range(NUMBER):
            fallen = start - np.arange(start + 1)
            tables[k, start, : start + 1] = -fallen * STEP / mean + np.log(-np.expm1(-STEP / mean))
            tables[k, start, 0] = -start * STEP / mean
    tables.setflags(write=False)
    return tables


@cache
def _points(size: int) -> Doubles:
    """(m, size) points that fill the unit cube evenly: multiples of powers of 1 / x, where x^(size + 1) = x + 1."""
    root = 2.0
    for _ in range(64):
        root = (1 + root) ** (1 / (size + 1))
    points: Doubles = (0.5 + np.arange(1, DRAWS + 1)[:, None] * root ** -np.arange(1.0, size + 1)) % 1
    points.setflags(write=False)
    return points


def _cumulate(log_weight: Doubles) -> Doubles:
    """Return cumulated shares of weights along the last axis; no draw uses a row without weight."""
    top = log_weight.max(-1, keepdims=True)
    sums = np.cumsum(np.exp(log_weight - np.where(np.isfinite(top), top, 0)), axis=-1)
    cumulated: Doubles = sums / np.maximum(sums[..., -1:], np.finfo(float).tiny)
    return cumulated


def _pick(table: Doubles, points: Doubles) -> tuple[Rows, Doubles]:
    """Return the entry of each point in its row of cumulated shares, and how far inside it the point is, 0 to 1."""
    at = np.minimum((table <= points[:, None]).sum(1), table.shape[1] - 1)
    rows = np.arange(len(points)) if len(table) > 1 else np.zeros(len(points), np.int64)
    below = np.where(at > 0, table[rows, np.maximum(at - 1, 0)], 0)
    return at, (points - below) / (table[rows, at] - below)
