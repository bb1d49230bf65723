"""How low can the loss of a perfect model go, if false negatives count as negatives?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lossscope.core.batches import Batch
from lossscope.core.relations import Relations
from lossscope.core.similarity import Mask
from lossscope.core.types import Progress, Rows
from lossscope.errors import InputError
from lossscope.objectives.base import Objective

from .calibration import Calibration, Doubles, interval
from .rates import BatchPairs, Estimate

Flags = npt.NDArray[np.bool_]
_MATCH, _APART = 1.0, -1.0  # similarities of a perfect model: vectors cannot do better
_TRUTHS = 10  # draws of which pairs match, for the value
_WEIGHTS = 50  # draws of the posterior, for the interval
_PAIRS = 1 << 20  # of all batches in a direction, for each draw; from large batches queries are drawn
_SEED = 3


@dataclass(frozen=True)
class LossFloor:
    """Mean losses of a query where positives and false negatives have a similarity of 1, all others −1.

    A model cannot know which of several matches was labelled. On an objective that compares them its mean loss is no
    lower; on a softmax of a small temperature it is E log(1 + m), m false negatives in the batch.
    """

    objective: str
    counted: Estimate  # false negatives are negatives
    masked: Estimate  # the mask leaves out those from the threshold on
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

    If the batches have more than a million pairs together, each draw takes other queries, against all of their
    candidates. An objective whose rows depend on each other takes all queries.

    Args:
        pairs: of random batches.
        relations: of the split.
        calibration: gives p; without its draws the floors have no intervals.
        threshold: the mask leaves out pairs of this probability or more.
        objective: of the losses.
        name: of the objective.
        progress: called with (label, done, of).

    Raises:
        InputError: an objective without a loss, or one that does not take these batches or similarities alone.
    """
    if objective.traits.needs_embeddings or objective.traits.required_info:
        raise InputError(f"{name} must be a function of similarities; it reads more, which a made-up model lacks")
    random = np.random.default_rng(_SEED)
    p = pairs.probabilities(calibration)
    posterior = [] if calibration.draws is None else _space_evenly(calibration.draws)
    hidden = [block > 0 for block in pairs.of_batches((p >= threshold).astype(np.float64))]
    directions = list(_directions(pairs.batches, relations, hidden))
    mixes_rows = objective.coupled or objective.traits.square
    total = sum(block.size for block in hidden)
    values: list[Doubles] = []
    bounds: list[Doubles] = []
    for number, weights in enumerate([*[None] * _TRUTHS, *posterior], 1):
        blocks = pairs.of_batches(p if weights is None else pairs.probabilities(calibration, weights))
        losses = []
        for direction in directions:
            block = blocks[direction.batch].T if direction.is_second else blocks[direction.batch]
            rows = np.arange(len(block))
            if not mixes_rows:
                rows = np.sort(random.permutation(rows)[: max(_PAIRS * len(block) // total, 1)])
            truth = random.random((len(rows), block.shape[1])) < block[rows]
            losses.append(direction.losses(objective, name, rows, truth, weights is None))
        (values if weights is None else bounds).append(np.mean(losses, 0))
        if progress:
            progress(f"floors of {name}", number, _TRUTHS + len(posterior))
    counted, masked, without = np.mean(values, 0).tolist()
    low = [interval(column) for column in np.transpose(bounds)] if bounds else [(None, None)] * 2
    return LossFloor(name, Estimate(counted, *low[0]), Estimate(masked, *low[1]), without)


def _space_evenly(draws: Doubles) -> list[Doubles]:
    """Return at most 50 draws, at equal steps."""
    return list(draws[np.linspace(0, len(draws) - 1, min(_WEIGHTS, len(draws))).round().astype(int)])


@dataclass(frozen=True, eq=False)
class _Direction:
    """The queries of a batch from one side."""

    batch: int
    is_second: bool  # queries are the batch's candidates
    mask: Mask
    hidden: Flags  # (q, c) pairs that the mask of the audit leaves out

    def losses(self, objective: Objective, name: str, rows: Rows, truth: Flags, is_whole: bool) -> list[float]:
        """Return the mean losses of queries: false negatives counted, masked, and, if asked for, all left out.

        Args:
            objective: of the losses.
            name: of the objective.
            rows: of the queries.
            truth: (r, c) which of their negatives match.
            is_whole: whether to compute the loss without false negatives, too.
        """
        mask, match = self.mask.rows(torch.from_numpy(rows)), torch.from_numpy(truth)
        S = torch.where(mask.match | match, _MATCH, _APART)
        hidden = torch.from_numpy(self.hidden[rows])
        left_out = [torch.zeros_like(match), hidden, *([match] if is_whole else [])]
        return [_mean(objective, name, S, replace(mask, valid=mask.valid & ~flags)) for flags in left_out]


def _directions(batches: Sequence[Batch], relations: Relations, hidden: Sequence[Flags]) -> Iterator[_Direction]:
    """Yield the directions of batches: both, or the only one of a labelled set."""
    for number, (batch, flags) in enumerate(zip(batches, hidden, strict=True)):
        mask = batch.mask(relations, "mask")
        yield _Direction(number, False, mask, flags)
        if not batch.is_one_set:
            yield _Direction(number, True, mask.t(), np.ascontiguousarray(flags.T))


def _mean(objective: Objective, name: str, S: Tensor, mask: Mask) -> float:
    """Return the mean loss of the queries that have a loss."""
    weights = objective(S, mask)
    if weights.values is None:
        raise InputError(f"{name} must have a loss; it states its gradient alone")
    losses = weights.values[weights.usable].double()
    if not len(losses) or not bool(losses.isfinite().all()):
        raise InputError(f"{name} must have finite losses; it has {len(losses)}, or some that are not finite")
    return float(losses.mean())
