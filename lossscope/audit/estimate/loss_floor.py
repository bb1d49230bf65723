"""What does the loss of a model that is right about all pairs stay at, because false negatives count as negatives?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lossscope.core.batches import Batch
from lossscope.core.relations import Relations
from lossscope.core.similarity import Mask
from lossscope.core.types import Progress
from lossscope.errors import InputError
from lossscope.objectives.base import Objective

from .calibration import Calibration, Doubles, interval
from .rates import BatchPairs, Estimate

Flags = npt.NDArray[np.bool_]
_MATCH, _APART = 1.0, -1.0  # similarities of a model that is right: no vectors can do more
_TRUTHS = 10  # draws of which pairs match, for the value
_WEIGHTS = 50  # draws of the posterior, for the interval
_SEED = 3


@dataclass(frozen=True)
class LossFloor:
    """Mean losses of a query where positives and false negatives have a similarity of 1, all others −1.

    A model that cannot know which of several matches was labelled does no better, in the mean, on an objective that
    compares them; on a softmax of a small temperature the loss is E log(1 + m), m false negatives in the batch.
    """

    objective: str
    counted: Estimate  # false negatives are negatives
    masked: Estimate  # those from the threshold on are left out
    without: float  # all of them are left out


def loss_floor(
    pairs: BatchPairs,
    relations: Relations,
    calibration: Calibration,
    threshold: float,
    objective: Objective,
    name: str,
    progress: Progress | None = None,
) -> LossFloor:
    """Return the floors of an objective, with intervals by draws of the weights and of which pairs match.

    Args:
        pairs: of random batches.
        relations: of the split.
        calibration: says p; without draws there are no intervals.
        threshold: from which the mask leaves a pair out.
        objective: whose losses.
        name: of the objective.
        progress: called with (label, done, of).

    Raises:
        InputError: an objective without a loss, or one that does not take these batches or similarities alone.
    """
    if objective.traits.needs_embeddings or objective.traits.required_info:
        raise InputError(f"{name} must be a function of similarities; it reads more, which a made-up model lacks")
    masks = [batch.mask(relations, "mask") for batch in pairs.batches]
    random = np.random.default_rng(_SEED)
    p = pairs.probabilities(calibration)
    draws = [None] * _TRUTHS
    posterior = [] if calibration.draws is None else _spaced(calibration.draws)
    hidden = pairs.of_batches((p >= threshold).astype(np.float64))
    values, bounds = [], []
    label = f"floors of {name}"
    for number, weights in enumerate([*draws, *posterior], 1):
        blocks = pairs.of_batches(p if weights is None else pairs.probabilities(calibration, weights))
        truths = [random.random(block.shape) < block for block in blocks]

        def mean(left_out: Callable[[int], Flags | None], truths: Sequence[Flags] = truths) -> float:
            losses = [
                _losses(objective, name, batch, mask, truth, left_out(place))
                for place, (batch, mask, truth) in enumerate(zip(pairs.batches, masks, truths, strict=True))
            ]
            return float(np.mean([float(part.mean()) for part in losses]))

        row = mean(lambda _: None), mean(lambda place: hidden[place] > 0)
        if weights is None:
            values.append((*row, mean(truths.__getitem__)))
        else:
            bounds.append(row)
        if progress:
            progress(label, number, len(draws) + len(posterior))
    counted, masked, without = np.mean(values, 0).tolist()
    low = [interval(column) for column in np.transpose(bounds)] if bounds else [(None, None)] * 2
    return LossFloor(name, Estimate(counted, *low[0]), Estimate(masked, *low[1]), without)


def _spaced(draws: Doubles) -> list[Doubles]:
    """Return 50 draws, or all of fewer, at equal steps."""
    return list(draws[np.linspace(0, len(draws) - 1, min(_WEIGHTS, len(draws))).round().astype(int)])


def _losses(objective: Objective, name: str, batch: Batch, mask: Mask, truth: Flags, left_out: Flags | None) -> Tensor:
    """Return the losses of the queries of a batch, both directions one after the other."""
    match = torch.from_numpy(truth)
    S = torch.where(mask.match | match, _MATCH, _APART)
    if left_out is not None:
        mask = replace(mask, valid=mask.valid & ~torch.from_numpy(left_out))
    directions = [(S, mask)] if batch.is_one_set else [(S, mask), (S.T.contiguous(), mask.t())]
    losses = []
    for similarities, of_direction in directions:
        weights = objective(similarities, of_direction)
        if weights.values is None:
            raise InputError(f"{name} must have a loss; it states its gradient alone")
        losses.append(weights.values[weights.usable])
    whole = torch.cat(losses).double()
    if not len(whole) or not bool(whole.isfinite().all()):
        raise InputError(f"{name} must have finite losses; it has {len(whole)}, or some that are not finite")
    return whole
