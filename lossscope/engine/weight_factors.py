"""Is a loss a triplet weight times a pair weight? Fit w₊ = T P₊(s₊), w₋ = T P₋(s₋) to its field of weights."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from lossscope.objectives.base import Objective
from lossscope.registry import spec_of

from .analysis_options import FactorOptions
from .field_curl import Curl, field_curl
from .weight_fields import weight_field

POINTS, COARSE = 80, 40  # along a side, so that no margin is a multiple of a step; COARSE for one call a point
FLOOR = 1e-6  # share of the largest weight of a side above which its logarithm is fitted
ZERO = 1e-12  # share of the largest weight up to which a weight is 0
EXACT = 1e-6  # of the logarithm of a ratio: residual up to which the field factorises
_INSET = 0.025  # of the range, at each end, without a point of the curl: losses have roots at 1
CELL_COLUMNS = ("objective", "s_pos", "s_neg", "triplet", "positive", "negative", "residual")
SUMMARY_COLUMNS = (
    "objective", "spec", "factorises", "cells", "fitted", "one_zero", "not_factorisable", "rms", "largest",
    "unexplained", "balance", "T_by_D", "curl", "curl_relative", "curl_points", "kinks", "low", "high", "points",
)  # fmt: skip
_Grid = npt.NDArray[np.float64]
_Cells = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class FieldFactors:
    """T, P₊ and P₋ of a field of weights, and what they leave.

    Grids are (m, n): s₋ by row, s₊ by column. Pull is −w₊, push is w₋.
    """

    triplet: _Grid  # (m, n) T >= 0, NaN where it is unknown
    positive: _Grid  # (n,) P₊(s₊) with geometric mean 1, NaN where it is unknown, below 0 where it pushes
    negative: _Grid  # (m,) P₋(s₋), likewise, below 0 where it pulls
    residual: _Grid  # (m, n) log(pull / push) − log(P₊ / P₋) − log(balance), NaN where it is not fitted
    balance: float  # pull / push that T, P₊ and P₋ do not have: its logarithm is that of their mean ratio
    fitted: int  # cells of the fit
    one_zero: int  # cells where exactly one weight is 0
    not_factorisable: int  # cells that no T, P₊ and P₋ explain: a single zero, or a sign
    unexplained: float  # share of the variance of log(pull / push) that the fit leaves; NaN where it is constant

    @property
    def rms(self) -> float:
        """Root of the mean square of the residual; NaN without a cell."""
        return math.sqrt(float(np.nanmean(np.square(self.residual)))) if self.fitted else math.nan

    @property
    def largest(self) -> float:
        """Return the largest |residual|; NaN without a cell."""
        return float(np.nanmax(np.abs(self.residual))) if self.fitted else math.nan

    @property
    def factorises(self) -> bool:
        """Whether T, P₊ and P₋ are the whole field but for rounding."""
        return self.fitted > 0 and self.not_factorisable == 0 and self.largest <= EXACT


def factor_field(pull: _Grid, push: _Grid) -> FieldFactors:
    """Fit log(pull / push) = a(s₊) + b(s₋) by least squares, then T = pull / P₊ = push / P₋.

    T may be any function of both similarities, so a field factorises exactly where log(pull / push) is additive. The
    fit is over cells where both weights are above FLOOR of the largest of their side. A cell where exactly one weight
    is 0 needs P = 0 there: it is not factorisable unless that weight is 0 at this similarity whatever the other is.
    So is a cell where a weight has another sign than most at its similarity, as T has none.

    Args:
        pull: (m, n) −w₊, s₋ by row and s₊ by column.
        push: (m, n) w₋.
    """
    sizes = np.abs(pull), np.abs(push)
    above, zero = zip(*((w > FLOOR * w.max(), w <= ZERO * w.max()) for w in sizes), strict=True)
    used = above[0] & above[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(sizes[0]), np.log(sizes[1])
        ratio = np.where(used, logs[0] - logs[1], 0.0)
    a, b = _additive_fit(ratio, used)
    balance = float(np.nanmean(a)) + float(np.nanmean(b)) if used.any() else math.nan
    a, b = a - _mean(a), b - _mean(b)
    residual = np.where(used, ratio - a[None, :] - b[:, None] - balance, np.nan)
    P_pos, P_neg = np.exp(a), np.exp(-b)
    signs = _signs(pull, above[0], 0), _signs(push, above[1], 1)
    wrong_sign = (above[0] & (np.sign(pull) != signs[0])) | (above[1] & (np.sign(push) != signs[1]))
    unexplained_zero = (zero[0] & above[1] & ~zero[0].all(0)) | (zero[1] & above[0] & ~zero[1].all(1)[:, None])
    variance = float(np.var(ratio[used])) if used.any() else math.nan
    return FieldFactors(
        triplet=_triplet(logs, (a[None, :] + balance / 2, -b[:, None] - balance / 2), above),
        positive=P_pos * signs[0][0], negative=P_neg * signs[1][:, 0], residual=residual,
        balance=math.exp(balance) if used.any() else math.nan, fitted=int(used.sum()),
        one_zero=int(((zero[0] & above[1]) | (zero[1] & above[0])).sum()),
        not_factorisable=int((unexplained_zero | wrong_sign).sum()),
        unexplained=float(np.mean(np.square(residual[used]))) / variance if variance > EXACT**2 else math.nan,
    )  # fmt: skip


def explained_by_difference(triplet: _Grid) -> float:
    """Return the share of the variance of T that s₋ − s₊ explains; NaN where T is constant.

    Differences that a single cell has are left out, as a cell explains itself.

    Args:
        triplet: (n, n) T on a grid whose sides have the same points, NaN where it is unknown.
    """
    rows, columns = np.indices(triplet.shape)
    frame = pd.DataFrame({"D": (rows - columns).ravel(), "T": triplet.ravel()}).dropna()
    values = frame.groupby("D")["T"]
    kept = frame[values.transform("size") > 1]
    total = float(np.square(kept["T"] - kept["T"].mean()).sum())
    if not total > EXACT**2 * float(np.square(kept["T"]).sum()):
        return math.nan
    within = kept["T"] - kept.groupby("D")["T"].transform("mean")
    return 1 - float(np.square(within).sum()) / total


def weight_factors(
    objective: Objective, title: str, options: FactorOptions | None = None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return what an objective's field is made of: one row of SUMMARY_COLUMNS, and cells with CELL_COLUMNS.

    factorises: T, P₊ and P₋ are the whole field. rms and largest: residual of log(pull / push), unexplained: its share
    of the variance. T_by_D: share of the variance of T that s₋ − s₊ explains. curl and curl_relative: see `field_curl`.

    Args:
        objective: whose weights depend on the similarities of a query alone.
        title: of the rows.
        options: the grid.

    Raises:
        InputError: the weights depend on the rest of a batch.

    Source: Xuan & Chen 2023, eq. 3 and 4.
    """
    options = options or FactorOptions()
    points = options.points or (COARSE if objective.coupled else POINTS)
    field = weight_field(objective, options.low, options.high, points)
    shape = (points, points)
    pull, push = (sign * field[name].to_numpy().reshape(shape) for name, sign in (("w_pos", -1.0), ("w_neg", 1.0)))
    factors = factor_field(pull, push)
    inset = _INSET * (options.high - options.low)
    curl: Curl = field_curl(objective, options.low + inset, options.high - inset)
    names = ("fitted", "one_zero", "not_factorisable", "unexplained", "balance")
    summary = {
        "objective": title, "spec": spec_of(objective), "factorises": factors.factorises, "cells": len(field),
        "rms": factors.rms, "largest": factors.largest, "T_by_D": explained_by_difference(factors.triplet),
        **{name: getattr(factors, name) for name in names},
        "curl": curl.largest, "curl_relative": curl.relative, "curl_points": curl.points, "kinks": curl.kinks,
        "low": options.low, "high": options.high, "points": points,
    }  # fmt: skip
    cells = field[["s_pos", "s_neg"]].assign(
        objective=title, triplet=factors.triplet.ravel(), residual=factors.residual.ravel(),
        positive=np.broadcast_to(factors.positive, shape).ravel(),
        negative=np.broadcast_to(factors.negative[:, None], shape).ravel(),
    )  # fmt: skip
    return pd.DataFrame([summary])[list(SUMMARY_COLUMNS)], cells[list(CELL_COLUMNS)]


def _additive_fit(values: _Grid, used: _Cells) -> tuple[_Grid, _Grid]:
    """Return a (n,) by column and b (m,) by row of the least-squares fit to used cells; NaN of lines without any."""
    weights = used.astype(np.float64)
    rows, columns = weights.sum(1), weights.sum(0)
    normal = np.block([[np.diag(columns), weights.T], [weights, np.diag(rows)]])
    n = len(columns)
    solution = np.zeros(n + len(rows))
    for _ in range(2):  # the second solves for what rounding left
        left = np.where(used, values - solution[None, :n] - solution[n:, None], 0.0)
        solution += np.linalg.lstsq(normal, np.concatenate([left.sum(0), left.sum(1)]), rcond=1e-12)[0]
    return np.where(columns > 0, solution[:n], np.nan), np.where(rows > 0, solution[n:], np.nan)


def _triplet(logs: tuple[_Grid, _Grid], pairs: tuple[_Grid, _Grid], above: tuple[_Cells, ...]) -> _Grid:
    """Return T, the geometric mean of both sides' or that of the one that is known; 0 where both weights are."""
    known = [of_side & np.isfinite(pair) for of_side, pair in zip(above, pairs, strict=True)]
    parts = [np.where(k, log - pair, 0.0) for k, log, pair in zip(known, logs, pairs, strict=True)]
    number = known[0].astype(int) + known[1]
    T = np.exp((parts[0] + parts[1]) / np.maximum(number, 1))
    silent = ~(above[0] | above[1]) & (np.isfinite(pairs[0]) | np.isfinite(pairs[1]))
    return np.where(number > 0, T, np.where(silent, 0.0, np.nan))


def _signs(weights: _Grid, above: _Cells, axis: int) -> _Grid:
    """Return the sign that most weights have at each similarity, 1 where there are none, with the other axis kept."""
    signs = np.sign(np.where(above, np.sign(weights), 0).sum(axis, keepdims=True))
    return np.where(signs == 0, 1.0, signs)


def _mean(values: _Grid) -> float:
    return float(np.nanmean(values)) if np.isfinite(values).any() else 0.0
