"""How many negatives of a batch are false, and how much of the gradient is on them?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import expit

from lossscope.core.batches import Batch
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.types import Rows
from lossscope.engine.small_batches import rows_of_stack
from lossscope.errors import InputError
from lossscope.objectives.base import Objective
from lossscope.probes.views.view import DenseRows

from .calibration import Calibration, Doubles, interval

_SEED = 1
_ROWS = 1 << 14  # pairs whose probabilities are computed at a time, under all draws


@dataclass(frozen=True)
class Estimate:
    """A number and its 95 % interval, which is None where nothing says how sure it is."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class WeightShare:
    """The share of an objective's gradient weight on negatives that is on false ones, under one source."""

    source: str
    objective: str
    share: Estimate
    above: float  # of it, on pairs that the mask leaves out
    epoch: int | None = None


@dataclass(frozen=True, eq=False)
class BatchPairs:
    """The negatives of random batches, with their signals."""

    batches: Sequence[Batch]
    negative: Sequence[npt.NDArray[np.bool_]]  # (b, c) of each batch, which pairs these are
    Z: Doubles  # (n, k) signals, of all batches one after the other
    copy: Rows  # (n,) 1 where a copy proves that the pair matches

    def probabilities(self, calibration: Calibration, weights: Doubles | None = None) -> Doubles:
        """Return the probability of each pair, (n,)."""
        p: Doubles = np.where(self.copy > 0, 1.0, calibration.probability(self.Z, weights))
        return p

    def sums(self, calibration: Calibration, columns: Doubles) -> Doubles:
        """Return Σ p · column of each column, for each draw of the weights, (m, s); one pass over the pairs.

        Args:
            calibration: with draws.
            columns: (n, s).
        """
        assert calibration.draws is not None
        total = np.zeros((len(calibration.draws), columns.shape[1]))
        draws = calibration.draws.astype(np.float32)
        for start in range(0, len(self.Z), _ROWS):
            part = slice(start, start + _ROWS)
            p = expit(draws[:, :1] + draws[:, 1:] @ self.Z[part].T.astype(np.float32))  # (m, rows)
            p[:, self.copy[part] > 0] = 1
            total += p @ columns[part]
        return total

    def of_batches(self, p: Doubles) -> list[Doubles]:
        """Return probabilities (b, c) of each batch, 0 where items are not negatives."""
        split = np.split(p, np.cumsum([int(mask.sum()) for mask in self.negative])[:-1])
        filled = []
        for mask, values in zip(self.negative, split, strict=True):
            block = np.zeros(mask.shape)
            block[mask] = values
            filled.append(block)
        return filled


def rate(pairs: BatchPairs, calibration: Calibration) -> Estimate:
    """Return the expected share of the negatives of a batch that match their query.

    Its interval has what labels leave open, by draws of the weights, and that batches are a sample.
    """
    p = pairs.probabilities(calibration)
    if calibration.draws is None:
        return Estimate(float(p.mean()))
    number = pairs.sums(calibration, np.ones((len(p), 1)))[:, 0]
    drawn = np.random.default_rng(_SEED).poisson(number)  # which of the pairs are false is not known either
    return Estimate(float(p.mean()), *interval(np.minimum(drawn / len(p), 1)))


def per_query(pairs: BatchPairs, calibration: Calibration) -> float:
    """Return the expected share of queries with at least one false negative in their batch."""
    blocks = pairs.of_batches(pairs.probabilities(calibration))
    return float(np.concatenate([1 - np.prod(1 - block, axis=1) for block in blocks]).mean())


def weight_share(
    pairs: BatchPairs,
    calibration: Calibration,
    split: SplitEmbeddings,
    objective: Objective,
    name: str,
    threshold: float,
    epoch: int | None = None,
) -> WeightShare:
    """Return Σ |W| p / Σ |W| over the negatives of both directions.

    Args:
        pairs: of random batches.
        calibration: says p.
        split: whose similarities the weights are of.
        objective: whose weights.
        name: of the objective.
        threshold: probability from which the mask leaves a pair out.
        epoch: of the source.

    Raises:
        InputError: an objective that does not take these batches.
    """
    weights = [
        _weights(split, batch, mask, objective) for batch, mask in zip(pairs.batches, pairs.negative, strict=True)
    ]
    total = sum(float(one.sum()) for one in weights)
    if total == 0:
        raise InputError(f"{name} must have weights on negatives; it has none in batches of {split.name}")
    flat = np.concatenate([one[mask] for one, mask in zip(weights, pairs.negative, strict=True)])

    p = pairs.probabilities(calibration)
    bounds = (None, None)
    if calibration.draws is not None:
        bounds = interval(pairs.sums(calibration, flat[:, None])[:, 0] / total)
    estimate = Estimate(float(flat @ p) / total, *bounds)
    return WeightShare(split.name, name, estimate, float(flat[p >= threshold].sum()) / total, epoch)


def _weights(
    split: SplitEmbeddings, batch: Batch, negative: npt.NDArray[np.bool_], objective: Objective
) -> npt.NDArray[np.float64]:
    """(b, c) weight of each negative, both directions together."""
    total = np.zeros(negative.shape)
    for place, rows in enumerate(rows_of_stack(split, [batch], "keep", objective.needs_embeddings)):
        W = _negative_weights(rows, objective)
        total += W.T if place else W
    weights: npt.NDArray[np.float64] = np.where(negative, total, 0.0)
    return weights


def _negative_weights(rows: DenseRows, objective: Objective) -> npt.NDArray[np.float64]:
    W = objective(rows.S, rows.mask).W.detach().abs()
    W = torch.where(rows.mask.negatives & W.isfinite(), W, torch.zeros_like(W))
    return np.asarray(W.double().numpy())
