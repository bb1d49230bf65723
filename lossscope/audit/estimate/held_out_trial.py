"""Do linear heads on frozen vectors find more when trained without the suspects? A trial on held-out items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count, islice
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lossscope.core.batches import Batch, Sampling
from lossscope.core.intervals import t_quantile
from lossscope.core.relations import NONE, Relations
from lossscope.core.similarity import Mask, normalise
from lossscope.core.types import LEVEL, Progress, Rows
from lossscope.core.weights import backward, both, reduce_weights
from lossscope.errors import InputError
from lossscope.objectives.base import Objective

from ..types import Floats
from .calibration import Doubles

Flags = npt.NDArray[np.bool_]
Ranking = Literal["by probability", "left out", "as labelled"]  # how a suspect counts, see Difference
RANKINGS: tuple[Ranking, ...] = ("by probability", "left out", "as labelled")
MEASURES = ("R@1", "R@5", "mAP")  # of a query, in per cent
SEEDS = 5
WIDTH = 128  # of the heads, at most
_STEPS, _RATE = 150, 0.003  # of each training; the learning rate falls to 0 on a line
_QUERIES, _CANDIDATES = 2000, 10_000  # at most
_BATCH = 512  # pairs of a batch at most: the time of a step grows with their square
_LEAST = 40  # queries: fewer cannot be cut in halves


@dataclass(frozen=True)
class Difference:
    """A measure of heads trained with the mask, less that of heads trained without it: mean and 95 % interval."""

    ranking: Ranking  # a suspect is a right answer with its probability, left out, or a wrong answer
    measure: str
    without: float  # the mean without the mask
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Trial:
    """What the heads found on held-out items."""

    vectors: str  # of the training
    objective: str
    width: int
    queries: int
    hidden: int  # pairs of these items that the mask leaves out
    differences: tuple[Difference, ...]
    batch_size: int  # pairs of the largest batch

    @property
    def headline(self) -> Difference:
        """The difference of mAP by probability; with labels it decides the verdict."""
        return next(part for part in self.differences if (part.ranking, part.measure) == (RANKINGS[0], MEASURES[-1]))


@dataclass(frozen=True, eq=False)
class TrialItems:
    """Items of two sides with vectors, their positives, and their suspects."""

    name: str  # of the vectors
    first: Floats  # (N, d)
    second: Floats  # (M, d)
    relations: Relations  # of two sides
    hidden: Any  # (N, M) sparse bool, pairs that the mask leaves out
    probability: Any  # (N, M) sparse, that a pair matches that is no known positive

    def take(self, queries: Rows, candidates: Rows) -> TrialItems:
        """Return the items at these rows of both sides."""
        relations = self.relations
        rows, columns = _positions(queries, relations.first), _positions(candidates, relations.second)
        positives = np.stack([rows[relations.positives[:, 0]], columns[relations.positives[:, 1]]], 1)
        positives = positives[(positives != NONE).all(1)]
        mined = None if relations.negatives is None else relations.negatives[queries]
        negatives = None if mined is None else np.where(mined == NONE, NONE, columns[mined])
        return TrialItems(
            self.name, self.first[queries], self.second[candidates],
            Relations(len(queries), len(candidates), positives, relations.sides, negatives=negatives),
            self.hidden[queries][:, candidates], self.probability[queries][:, candidates],
        )  # fmt: skip

    @property
    def owners(self) -> Rows:
        """(M,) the first query with the candidate as a positive, or else as a mined negative; −1 without any."""
        owners, relations = np.full(self.relations.second, NONE), self.relations
        if relations.negatives is not None:
            rows, columns = np.nonzero(relations.negatives != NONE)
            owners[relations.negatives[rows, columns][::-1]] = rows[::-1]
        pairs = relations.positives[np.argsort(-relations.positives[:, 0], kind="stable")]
        owners[pairs[:, 1]] = pairs[:, 0]
        return owners


def _positions(rows: Rows, size: int) -> Rows:
    """(size,) the position of each row in `rows`; −1 of other rows."""
    positions = np.full(size, NONE)
    positions[rows] = np.arange(len(rows))
    return positions


def held_out_trial(
    items: TrialItems,
    objective: Objective,
    name: str,
    batch_size: int,
    seed: int = 0,
    progress: Progress | None = None,
) -> Trial:
    """Train heads with and without the mask, each on a half of the queries, and rank the other half.

    A head is x ↦ (x + x W) / |x + x W|, W = 0 at the start; each side has a head. Both trainings of a half have the
    same batches. Five seeds cut the queries and draw the batches; each seed ranks each query once. A query's value is
    the mean of both directions: of its rank and of the ranks of its candidates.

    Args:
        items: at most 2,000 queries and 10,000 candidates are drawn from them.
        objective: of the training.
        name: of the objective.
        batch_size: pairs of a batch; at most 512, and at most a half of the pairs.
        seed: of the first cut.
        progress: called with (label, done, of).

    Raises:
        InputError: too few queries, a mask without a pair of the items, or an objective that does not take the batches.
    """
    if objective.traits.required_info:
        raise InputError(f"{name} must be a function of similarities; it reads {objective.traits.required_info[0]}")
    items = _narrow(_draw(items, seed))
    hidden = int(items.hidden.sum())
    if not hidden:
        raise InputError("the mask must leave out a pair of the trial's items; it leaves out none")
    shape = items.relations.first, SEEDS, len(RANKINGS), len(MEASURES)
    with_mask, without = np.full(shape, np.nan), np.full(shape, np.nan)
    largest = 0
    for trial in range(SEEDS):
        for number, (train, test, rows) in enumerate(_halves(items, seed + trial)):
            sampling = Sampling("pairs", min(batch_size, _BATCH), seed + trial, min_batch_size=2)
            largest = max(largest, *(batch.pairs for batch in sampling.batches(train.relations)))
            found = [_train(train, test, objective, sampling, is_masked) for is_masked in (True, False)]
            answers = _answers(test, seed + trial)
            for values, (first, second) in zip((with_mask, without), found, strict=True):
                values[rows, trial] = _values(first @ second.T, test, answers)
            if progress:
                progress("trial of the mask", 2 * trial + number + 1, 2 * SEEDS)
    is_ranked = np.isfinite(without[:, :, 0, 0]).all(1)
    if is_ranked.sum() < _LEAST:
        raise InputError(f"a trial needs {_LEAST} queries whose positives are theirs alone; got {is_ranked.sum()}")
    with_mask, without = with_mask[is_ranked], without[is_ranked]
    differences = tuple(
        Difference(
            ranking, measure, float(without[..., row, column].mean()),
            *crossed_interval(with_mask[..., row, column] - without[..., row, column]),
        )
        for row, ranking in enumerate(RANKINGS)
        for column, measure in enumerate(MEASURES)
    )  # fmt: skip
    return Trial(items.name, name, items.first.shape[1], int(is_ranked.sum()), hidden, differences, largest)


def crossed_interval(values: Doubles) -> tuple[float, float, float]:
    """Return the mean of (n, s) values of queries and seeds, and mean ∓ t · SE, where both are random.

    SE² = var(means of queries) / n + var(means of seeds) / s, which counts the interaction of both twice. The degrees
    of freedom are those of Welch and Satterthwaite.
    """
    parts = [(values.mean(axis).var(ddof=1) / values.shape[1 - axis], values.shape[1 - axis]) for axis in (1, 0)]
    square = sum(part for part, _ in parts)
    mean = float(values.mean())
    if not square > 0:
        return mean, mean, mean
    freedom = square**2 / sum(part**2 / (size - 1) for part, size in parts)
    half = float(t_quantile(LEVEL, freedom) * np.sqrt(square))
    return mean, mean - half, mean + half


def _draw(items: TrialItems, seed: int) -> TrialItems:
    """Draw queries with positives, and their candidates."""
    relations = items.relations
    if relations.one_set:
        raise InputError("a trial must be of two sides; these are items of one labelled set")
    random, counts = np.random.default_rng(seed), relations.number_of_positives
    queries = random.permutation(np.nonzero(counts > 0)[0])
    queries = np.sort(queries[: min(_QUERIES, int((counts[queries].cumsum() <= _CANDIDATES).sum()))])
    if len(queries) < _LEAST:
        raise InputError(f"a trial must have {_LEAST} queries with a positive; got {len(queries)}")
    owners = items.owners
    candidates = np.nonzero((owners == NONE) | np.isin(owners, queries))[0]
    if len(candidates) > _CANDIDATES:  # candidates without a query fill up the rest
        of_queries = candidates[owners[candidates] != NONE]
        others = random.permutation(candidates[owners[candidates] == NONE])
        candidates = np.sort(np.r_[of_queries, others[: max(_CANDIDATES - len(of_queries), 0)]])
    return items.take(queries, candidates)


def _narrow(items: TrialItems) -> TrialItems:
    """Project the vectors on at most 128 dimensions, those of the largest singular values."""
    if items.first.shape[1] <= WIDTH:
        return items
    from sklearn.decomposition import TruncatedSVD

    joined = np.concatenate([items.first, items.second])
    svd = TruncatedSVD(min(WIDTH, min(joined.shape) - 1), random_state=0).fit(joined)
    first, second = (svd.transform(side).astype(np.float32) for side in (items.first, items.second))
    return TrialItems(items.name, first, second, items.relations, items.hidden, items.probability)


def _halves(items: TrialItems, seed: int) -> list[tuple[TrialItems, TrialItems, Rows]]:
    """Return (items to train on, items to rank, rows of the ranked queries) twice: each half is ranked once."""
    random = np.random.default_rng(seed)
    side = random.permutation(items.relations.first) % 2
    owners = items.owners
    of_candidates = np.where(owners == NONE, random.integers(0, 2, len(owners)), side[owners])
    halves = [(np.nonzero(side == half)[0], np.nonzero(of_candidates == half)[0]) for half in (0, 1)]
    parts = [items.take(*rows) for rows in halves]
    return [(parts[0], parts[1], halves[1][0]), (parts[1], parts[0], halves[0][0])]


def _train(
    items: TrialItems, test: TrialItems, objective: Objective, sampling: Sampling, is_masked: bool
) -> tuple[Tensor, Tensor]:
    """Train both heads on the training items; return their vectors of the test items."""
    sides = [torch.from_numpy(side) for side in (items.first, items.second)]
    width = sides[0].shape[1]
    heads = [torch.zeros(width, width, requires_grad=True) for _ in sides]
    optimiser = torch.optim.Adam(heads, lr=_RATE)
    hidden = items.hidden.toarray() if is_masked else None
    for step, batch in enumerate(_batches(items.relations, sampling)):
        for group in optimiser.param_groups:
            group["lr"] = _RATE * (1 - step / _STEPS)
        rows = [torch.from_numpy(part) for part in (batch.images, batch.captions)]
        first, second = (_apply(head, side[row]) for head, side, row in zip(heads, sides, rows, strict=True))
        S = first @ second.T
        mask = _mask(batch, items.relations, hidden)
        if objective.traits.needs_embeddings:
            mask = replace(mask, info={"queries": first.detach(), "candidates": second.detach()})
        traits = objective.traits
        loss = reduce_weights(both(objective, S.detach(), mask), traits.directions, traits.reduction, batch.pairs)
        optimiser.zero_grad()
        backward(S, loss.gradient)
        optimiser.step()
    with torch.no_grad():
        others = [torch.from_numpy(side) for side in (test.first, test.second)]
        first, second = (_apply(head, side) for head, side in zip(heads, others, strict=True))
    return first, second


def _apply(head: Tensor, vectors: Tensor) -> Tensor:
    """(x + x W) / |x + x W| of each row."""
    return normalise(vectors + vectors @ head)


def _batches(relations: Relations, sampling: Sampling) -> Iterator[Batch]:
    """Yield 150 batches, from as many epochs as they need."""
    epochs = (sampling.batches(relations, epoch) for epoch in count())
    return islice(chain.from_iterable(epochs), _STEPS)


def _mask(batch: Batch, relations: Relations, hidden: Flags | None) -> Mask:
    """Return the mask of a batch, without the hidden pairs."""
    mask = batch.mask(relations)
    if hidden is None:
        return mask
    left_out = torch.from_numpy(hidden[batch.images[:, None], batch.captions[None, :]])
    return replace(mask, valid=mask.valid & ~(left_out & ~mask.match))


@dataclass(frozen=True, eq=False)
class Answers:
    """What a ranking counts as right, and what it leaves out: rows of queries and of candidates."""

    right: Rows  # (n, 2)
    left_out: Rows  # (m, 2) none of them right

    def t(self) -> Answers:
        """Return the answers of the other direction."""
        return Answers(self.right[:, ::-1], self.left_out[:, ::-1])


def _answers(items: TrialItems, seed: int) -> list[Answers]:
    """Return the answers of each of RANKINGS."""
    drawn = items.probability.tocoo()
    is_match = np.random.default_rng(seed).random(len(drawn.data)) < drawn.data
    matches = np.stack([drawn.row[is_match], drawn.col[is_match]], 1).astype(np.int64)
    hidden = np.stack(items.hidden.nonzero(), 1).astype(np.int64)
    known, none = items.relations.positives, np.zeros((0, 2), np.int64)
    return [Answers(np.concatenate([known, matches]), none), Answers(known, hidden), Answers(known, none)]


def _values(S: Tensor, items: TrialItems, answers: Sequence[Answers]) -> Doubles:
    """Return (N, rankings, measures), each query's mean of both directions; NaN without a positive."""
    first = _of_direction(S, answers)
    second = _of_direction(S.T.contiguous(), [ranking.t() for ranking in answers])
    owners, size = items.owners, items.relations.first
    is_owned = (owners != NONE) & np.isfinite(second).all((1, 2))
    owners, second = owners[is_owned], second[is_owned]
    sums = np.zeros_like(first)
    np.add.at(sums, owners, second)
    with np.errstate(invalid="ignore"):
        return (first + sums / np.bincount(owners, minlength=size)[:, None, None]) / 2


def _of_direction(S: Tensor, answers: Sequence[Answers]) -> Doubles:
    """Return (q, rankings, measures) of the queries, rows of S; NaN without a positive."""
    order = S.argsort(dim=1, descending=True, stable=True)
    positions = torch.empty_like(order).scatter_(1, order, torch.arange(S.shape[1]).expand_as(order)).numpy()
    return np.stack([_measures(positions, ranking) for ranking in answers], 1)


def _measures(positions: Rows, answers: Answers) -> Doubles:
    """Return (q, measures) from the positions (q, c) of candidates; NaN without a positive."""
    pairs = np.concatenate([answers.right, answers.left_out])
    is_right = np.arange(len(pairs)) < len(answers.right)
    rows, position = pairs[:, 0], positions[pairs[:, 0], pairs[:, 1]]
    order = np.lexsort((position, rows))
    rows, position, is_right = rows[order], position[order], is_right[order]
    starts = np.searchsorted(rows, rows)
    nth, left_out = (counts - np.r_[0, counts][starts] for counts in (np.cumsum(is_right), np.cumsum(~is_right)))
    rows, rank, nth = rows[is_right], (position - left_out + 1)[is_right], nth[is_right]
    number = np.bincount(rows, minlength=len(positions))
    values = np.full((len(positions), len(MEASURES)), np.nan)
    is_query = number > 0
    best = rank[nth == 1]  # one row a query, in their order
    precision = np.bincount(rows, nth / rank, len(positions))[is_query] / number[is_query]
    values[is_query] = 100 * np.stack([best <= 1, best <= 5, precision], 1)
    return values
