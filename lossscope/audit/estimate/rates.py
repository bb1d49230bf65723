"""How many negatives of a batch are false, and how much of the gradient is on them?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from lossscope.core.batches import Batch
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.types import Progress, Rows
from lossscope.engine.small_batches import rows_of_stack
from lossscope.errors import InputError
from lossscope.objectives.base import Objective
from lossscope.probes.views.view import DenseRows

from .calibration import Calibration, Doubles, interval

_SEED = 1


@dataclass(frozen=True)
class Estimate:
    """A number and its 95 % interval; None if its uncertainty is unknown."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class WeightShare:
    """The share of an objective's weight on negatives that lies on false negatives, under one source."""

    source: str
    objective: str
    share: Estimate
    above: float  # share of the weight on pairs that the mask leaves out
    epoch: int | None = None


@dataclass(frozen=True, eq=False)
class BatchPairs:
    """The negatives of random batches, with their signals."""

    batches: Sequence[Batch]
    negative: Sequence[npt.NDArray[np.bool_]]  # (b, c) of each batch, True at negatives
    Z: Doubles  # (n, k) signals, of all batches one after the other
    copy: Rows  # (n,) 1 where a copy proves that the pair matches

    def probabilities(self, calibration: Calibration, weights: Doubles | None = None) -> Doubles:
        """Return the probability of each pair, (n,)."""
        p: Doubles = np.where(self.copy > 0, 1.0, calibration.probability(self.Z, weights))
        return p

    def of_batches(self, p: Doubles) -> list[Doubles]:
        """Return probabilities (b, c) of each batch, 0 where a pair is no negative."""
        split = np.split(p, np.cumsum([int(mask.sum()) for mask in self.negative])[:-1])
        filled = []
        for mask, values in zip(self.negative, split, strict=True):
            block = np.zeros(mask.shape)
            block[mask] = values
            filled.append(block)
        return filled


Quantity = Callable[[Doubles], float]
"""Of the probabilities of the pairs, (n,)."""


def estimates(
    pairs: BatchPairs,
    calibration: Calibration,
    quantities: Sequence[Quantity],
    progress: Progress | None = None,
) -> list[Estimate]:
    """Return quantities of the probabilities, with intervals by draws of the weights; one pass over the draws.

    Args:
        pairs: of random batches.
        calibration: gives p; without its draws the numbers have no intervals.
        quantities: functions of p; NaN where undefined, without an interval.
        progress: called with (label, done, of).
    """
    p = pairs.probabilities(calibration)
    values = [quantity(p) for quantity in quantities]
    if calibration.draws is None:
        return [Estimate(value) for value in values]
    table = np.empty((len(calibration.draws), len(quantities)))
    for row, weights in enumerate(calibration.draws):
        p = pairs.probabilities(calibration, weights)
        table[row] = [quantity(p) for quantity in quantities]
        if progress:
            progress("intervals", row + 1, len(table))
    return [Estimate(value, *_interval(column)) for value, column in zip(values, table.T, strict=True)]


def _interval(draws: Doubles) -> tuple[float | None, float | None]:
    return interval(draws) if np.isfinite(draws).all() else (None, None)


def mean_rate(p: Doubles) -> float:
    """Return the expected share of the negatives of a batch that match their query."""
    return float(p.mean())


def sampled_rate() -> Quantity:
    """Return a quantity that draws the share of matches given p, as which pairs match is random, too."""
    random = np.random.default_rng(_SEED)

    def drawn(p: Doubles) -> float:
        spread = np.sqrt((p * (1 - p)).sum()) / len(p)
        return float(np.clip(random.normal(p.mean(), spread), 0, 1))

    return drawn


def per_query(pairs: BatchPairs, calibration: Calibration) -> float:
    """Return the expected share of queries with at least one false negative in their batch."""
    blocks = pairs.of_batches(pairs.probabilities(calibration))
    return float(np.concatenate([1 - np.prod(1 - block, axis=1) for block in blocks]).mean())


@dataclass(frozen=True, eq=False)
class NegativeWeights:
    """The weight of an objective on each negative of the batches, under one source."""

    source: str
    objective: str
    flat: Doubles  # (n,) |W| of both directions together
    epoch: int | None = None

    def share(self, p: Doubles) -> float:
        """Return Σ |W| p / Σ |W|, the share of the weight on false negatives."""
        return float(self.flat @ p) / float(self.flat.sum())


def negative_weights(
    pairs: BatchPairs,
    split: SplitEmbeddings,
    objective: Objective,
    name: str,
    epoch: int | None = None,
    progress: Progress | None = None,
) -> NegativeWeights:
    """Return the weights of the negatives of random batches.

    Args:
        pairs: of these batches.
        split: the source of similarities.
        objective: of the weights.
        name: of the objective.
        epoch: of the source.
        progress: called with (label, done, of).

    Raises:
        InputError: an objective that does not take these batches, has no weight on their negatives, or has weights
            that are not finite.
    """
    flat = []
    for number, (batch, mask) in enumerate(zip(pairs.batches, pairs.negative, strict=True), 1):
        flat.append(_weights(split, batch, mask, objective)[mask])
        if progress:
            progress(f"weights of {name}", number, len(pairs.batches))
    whole = np.concatenate(flat)
    if not np.isfinite(whole).all():
        number = int((~np.isfinite(whole)).sum())
        raise InputError(f"{name} must have finite weights on negatives; {number} of {len(whole)} are not")
    if float(whole.sum()) == 0:
        raise InputError(f"{name} must have weights on negatives; it has none in batches of {split.name}")
    return NegativeWeights(split.name, name, whole, epoch)


def _weights(
    split: SplitEmbeddings, batch: Batch, negative: npt.NDArray[np.bool_], objective: Objective
) -> npt.NDArray[np.float64]:
    """(b, c) weight of each negative, both directions together."""
    total = np.zeros(negative.shape)
    for number, rows in enumerate(rows_of_stack(split, [batch], "keep", objective.traits.needs_embeddings)):
        W = _negative_weights(rows, objective)
        total += W.T if number else W
    weights: npt.NDArray[np.float64] = np.where(negative, total, 0.0)
    return weights


def _negative_weights(rows: DenseRows, objective: Objective) -> npt.NDArray[np.float64]:
    W = objective(rows.S, rows.mask).W.detach().abs()
    return np.asarray(torch.where(rows.mask.negatives, W, torch.zeros_like(W)).double().numpy())
