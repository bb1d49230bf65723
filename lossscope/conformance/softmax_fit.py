"""Is the loss of a step a softmax, and if it is: its temperature, its scale, and how often the positive is in it.

W_ij = a (P_ij − δ_ij) of the queries' softmax P_ij = e_ij / Z_i, e = exp(s / τ), plus b times the same of the
candidates' softmax. Off the diagonal W_ij = A_i e_ij + b e_ij / Σ_k e_kj with A_i = a / Z_i. Z_i holds the positive M_i
times: once in a plain loss, twice where it is drawn again as a negative, not at all in a decoupled one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import least_squares, minimize_scalar
from torch import Tensor

from .pulls import Pulls
from .trial_embeddings import TrialEmbeddings

_TEMPERATURES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)  # where the search for the temperature begins
_TIGHT = 1e-15  # relative change at which the search ends
_FITTING = 1e-10  # relative error that a fit leaves in float64
_IMPRECISE = 1e-4  # rounding errors that hide a temperature
_WHOLE = 1e-3  # a number of copies that is as far as this from a whole one is none


@dataclass(frozen=True)
class SoftmaxFit:
    """A softmax that explains the weights of a step."""

    tau: float
    rows: float  # a τ: the weight of a query's loss; 1 / B where the loss is their mean
    columns: float  # b τ: the weight of a candidate's loss, 0 where there is one direction
    copies: Tensor | None  # (B,) M_i; None where no whole numbers fit


def fit_softmax(pulls: Pulls, trial: TrialEmbeddings, precision: float) -> SoftmaxFit | None:
    """Return the softmax whose weights are those of `pulls`; None where there is none.

    Args:
        pulls: weights in the gradients of queries.
        trial: the embeddings, whose products are the similarities.
        precision: relative size of a rounding error of the weights.
    """
    S = trial.queries @ trial.candidates.T
    used = pulls.pushed & ~torch.eye(len(S), dtype=torch.bool)
    if int(used.sum(1).min()) < 2 or precision > _IMPRECISE:
        return None
    tolerance = _FITTING if precision <= 1e-9 else 100 * precision
    best = min((_search(start, S, pulls.candidates, used) for start in _TEMPERATURES), key=lambda item: item[0])
    residual, tau = best
    if not residual < tolerance:
        return None
    A, b, _ = _linear_part(tau, S, pulls.candidates, used)
    e = (S / tau).exp()
    row_part = (A[:, None] * e).masked_fill(~used, 0.0).sum(1)
    further = pushed_elsewhere(pulls)
    copies, a = _copies(A, e.diagonal(), (row_part + further) / A, tau, tolerance)
    return SoftmaxFit(tau, a * tau, b * tau, copies)


def _search(start: float, S: Tensor, W: Tensor, used: Tensor) -> tuple[float, float]:
    """Return (residual, tau) of the best temperature near another."""

    def misfit(log_tau: np.ndarray) -> np.ndarray:
        return _linear_part(math.exp(float(log_tau[0])), S, W, used)[2].numpy()

    near = minimize_scalar(
        lambda log_tau: float(np.linalg.norm(misfit(np.array([log_tau])))),
        bounds=(math.log(start / 4), math.log(start * 4)),
        method="bounded",
    )
    around = (near.x - 0.1, near.x + 0.1)
    tight = least_squares(misfit, [near.x], bounds=around, xtol=_TIGHT, ftol=_TIGHT, gtol=_TIGHT)
    return float(np.linalg.norm(tight.fun)), math.exp(float(tight.x[0]))


def _linear_part(tau: float, S: Tensor, W: Tensor, used: Tensor) -> tuple[Tensor, float, Tensor]:
    """Return the A (B,) and the b that explain the weights of `used` best, and the relative errors that are left."""
    e = ((S - S.max()) / tau).exp()
    rows, columns = used.nonzero(as_tuple=True)
    weight = 1 / W[rows, columns].abs()  # relative errors: a temperature shows in the small weights as well
    design = torch.zeros(len(rows), len(S) + 1, dtype=torch.float64)
    design[torch.arange(len(rows)), rows] = e[rows, columns] * weight
    design[:, -1] = (e / e.sum(0))[rows, columns] * weight
    target = W[rows, columns] * weight
    scale = design.norm(dim=0).clamp(min=1e-300)
    solution = torch.linalg.lstsq(design / scale, target[:, None], driver="gelsd").solution[:, 0] / scale
    left = (design @ solution - target) / target.norm()
    return solution[:-1] * math.exp(-float(S.max()) / tau), float(solution[-1]), left


def pushed_elsewhere(pulls: Pulls) -> Tensor:
    """(B,) sums of the weights of mined negatives and of other queries."""
    off = ~torch.eye(len(pulls.queries), dtype=torch.bool)
    total = torch.where((pulls.queries > pulls.smallest) & off, pulls.queries, 0.0).sum(1)
    if pulls.negatives is not None:
        total = total + pulls.negatives.flatten(1).clamp(min=0).sum(1)
    return total


def _copies(A: Tensor, e: Tensor, K: Tensor, tau: float, tolerance: float) -> tuple[Tensor | None, float]:
    """Return M (B,) and a with a = A_i (M_i e_i + K_i): one M for all rows, else whole numbers for a usual scale."""
    size = len(A)
    design = torch.stack([torch.ones(size, dtype=torch.float64), -A * e], 1)
    target = A * K
    solution = torch.linalg.lstsq(design, target[:, None]).solution[:, 0]
    a, M = float(solution[0]), float(solution[1])
    if float((design @ solution - target).norm() / target.norm()) < tolerance and abs(M - round(M)) < 0.05:
        return torch.full((size,), M, dtype=torch.float64), a
    for weight in (1 / size, 1.0, 0.5 / size, 0.5, 2 / size, 2.0):
        copies = (weight / tau / A - K) / e
        if bool(((copies - copies.round()).abs() < _WHOLE).all()) and bool((copies > -_WHOLE).all()):
            return copies, weight / tau
    return None, a
