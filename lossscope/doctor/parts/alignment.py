"""How far above chance do positives rank? In a sample of pairs, each query meets the positives of all others."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.special import log_ndtr, ndtri

from lossscope.core.facts import TooLittle
from lossscope.core.pair import Pair
from lossscope.core.relations import Relations
from lossscope.core.similarity import Mask
from lossscope.core.types import Rows
from lossscope.engine.direction_rows import DirectionRows
from lossscope.engine.one_batch import dense_rows
from lossscope.probes.views.view import Extremes

from .items import Items
from .patient import Patient
from .vectors import draw_rows

MOST = 2048  # pairs
LEAST = 16  # pairs; with fewer, learning cannot be told from chance
_FAR_BELOW = 0.25  # of the recall that the AUC implies; trainings of the wall end with 0.35 and more
_LEAST_FALL = 0.05  # of recall@1
_NODES = 80  # of the quadrature over the positive
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class DirectionAlignment:
    """The ranks of positives among the candidates of one direction."""

    label: str  # of the direction, `i2t`
    share_above: Floats  # (m,) share of the negatives above the positive, ties by half: uniform in [0, 1] by chance
    first: Floats  # (m,) probability that the positive is ranked first, ties broken at random
    negatives: Floats  # (m,) number of negatives of each query

    @cached_property
    def auc(self) -> float:
        """Probability that a positive is above a negative; 0.5 by chance."""
        return float(1 - self.share_above.mean())

    @cached_property
    def recall(self) -> float:
        """Share of the queries whose positive is first."""
        return float(self.first.mean())

    @cached_property
    def chance(self) -> float:
        """Recall of guessing."""
        return float((1 / (1 + self.negatives)).mean())

    @cached_property
    def implied_recall(self) -> float:
        """Recall that the AUC implies where positives and negatives are normal, of one variance: `normal_recall`."""
        return normal_recall(self.auc, float(self.negatives.mean()))

    @property
    def is_far_below_auc(self) -> bool:
        """Whether recall is below a quarter of what the AUC implies, by more than its error and by a twentieth.

        Models at the end of the wall's trainings have 0.35 times it and more. In a first plateau, where a model knows
        groups and not items, they have less.
        """
        implied, m = self.implied_recall, len(self.share_above)
        error = 3 * float(np.sqrt(max(self.recall, 1 / m) / m))
        return self.recall + error < _FAR_BELOW * implied and implied - self.recall > _LEAST_FALL

    @property
    def error(self) -> float:
        """Standard error of `auc` under guessing."""
        return float(1 / np.sqrt(12 * len(self.share_above)))

    @property
    def auc_by_chance(self) -> float:
        """The AUC that guessing may reach."""
        return 0.5 + max(0.05, 3 * self.error)

    @property
    def at_chance(self) -> bool:
        """Whether neither the AUC nor recall separates positives from negatives."""
        return self.auc < self.auc_by_chance and self.recall_at_chance

    @property
    def recall_at_chance(self) -> bool:
        """Whether recall is no higher than that of guessing."""
        m = len(self.share_above)
        most = self.chance + 3 * np.sqrt(self.chance / m) + 2 / m
        return bool(self.recall <= max(most, 3 * self.chance))


@dataclass(frozen=True)
class Alignment:
    """Similarities of m pairs: row i is a query, column i its positive."""

    S: Pair[Tensor]  # (m, m) of each direction, queries as rows; t2i of one set is i2t
    valid: Tensor  # (m, m) bool, the entry is a negative of the query, or its positive
    rows: Pair[Rows]  # (m,) rows of the pairs in the sample
    labels: tuple[str, ...]  # of the directions
    needs: ClassVar[tuple[type, ...]] = (Items,)

    @classmethod
    def of(cls, _: Patient, items: Items) -> Alignment:
        """Compare a sample of pairs. Raises TooLittle for too few pairs."""
        split = items.split
        relations = split.relations
        first, second = choose_pairs(relations)
        if len(first) < LEAST:
            raise TooLittle(f"it has {len(first)} pairs; {LEAST} or more are needed")
        S = split.similarities(first, second).map(lambda x: x.detach().float().cpu())
        eye = np.eye(len(first), dtype=bool)
        valid = torch.from_numpy(~relations.is_positive(first, second) & ~_same(first, second, relations) | eye)
        return cls(S, valid & ~(S.i2t.isnan() | S.t2i.T.isnan()), Pair(first, second), relations.sides.labels)

    @property
    def pairs(self) -> int:
        """m, the number of pairs."""
        return len(self.valid)

    @cached_property
    def directions(self) -> tuple[DirectionAlignment, ...]:
        """The ranks of positives in each direction."""
        return tuple(align(S, valid, label) for label, S, valid in self.rows_of_directions)

    @property
    def rows_of_directions(self) -> tuple[tuple[str, Tensor, Tensor], ...]:
        """Label, S and valid entries of each direction, queries as rows."""
        return tuple(zip(self.labels, self.S, (self.valid, self.valid.T), strict=False))

    @property
    def negatives(self) -> Tensor:
        """(m, m) bool, the negatives of the first direction."""
        return self.valid & ~torch.eye(self.pairs, dtype=torch.bool)

    @property
    def at_chance(self) -> bool:
        """Whether no direction separates positives from negatives."""
        return all(direction.at_chance for direction in self.directions)

    @property
    def recall_at_chance(self) -> bool:
        """Whether recall is that of guessing in every direction."""
        return all(direction.recall_at_chance for direction in self.directions)

    @property
    def best(self) -> DirectionAlignment:
        """The direction with the highest AUC."""
        return max(self.directions, key=lambda direction: direction.auc)


def normal_recall(auc: float, negatives: float) -> float:
    """Return E[Φ(z + d)^n], z normal and d = √2 Φ⁻¹(AUC): recall@1 among n negatives of one normal distribution.

    Args:
        auc: probability that a positive is above a negative.
        negatives: n.
    """
    shift = math.sqrt(2) * ndtri(torch.tensor(min(max(auc, 1e-12), 1 - 1e-12), dtype=torch.float64))
    z, weights = map(torch.from_numpy, np.polynomial.hermite_e.hermegauss(_NODES))
    return float((weights / weights.sum() * torch.exp(negatives * log_ndtr(z + shift))).sum())


def align(S: Tensor, valid: Tensor, label: str) -> DirectionAlignment:
    """Return the ranks of the positives, on the diagonal, among the valid candidates of each row."""
    mask = Mask(torch.eye(len(S), dtype=torch.bool), valid)
    extremes = dense_rows(DirectionRows(S.where(valid, 0.0), mask), "i2t").extremes
    above, equal = extremes.above.double(), extremes.ties.double()
    negatives = mask.number_of_negatives.double().clamp(min=1)
    share_above = (above + 0.5 * equal) / negatives
    return DirectionAlignment(label, share_above.numpy(), probability_of_first(extremes).numpy(), negatives.numpy())


def probability_of_first(extremes: Extremes) -> Tensor:
    """Return the probability that the best positive of each query is ranked first, ties broken at random, float64."""
    return torch.where(extremes.above == 0, 1 / (1 + extremes.ties.double()), 0.0)


def mean_recall(S: Pair[Tensor], first: Rows, second: Rows, relations: Relations) -> float:
    """Return the mean recall@1 of both directions; further positives of a query are no candidates.

    Args:
        S: (m, m) of each direction, queries as rows.
        first: (m,) rows of the pairs.
        second: (m,) rows of the pairs.
        relations: of the items.
    """
    valid = torch.from_numpy(~relations.is_positive(first, second) | np.eye(len(first), dtype=bool))
    i2t, t2i = (x.detach().float() for x in S)
    return float(np.mean([align(i2t, valid, "").recall, align(t2i, valid.T, "").recall]))


def choose_pairs(relations: Relations, seed: int = 0) -> tuple[Rows, Rows]:
    """Return at most MOST pairs of different items of both sides; in one set, an item and the next of its class.

    An item of the second side that belongs to many of the first comes once: its copies would tie.
    """
    if relations.labels is not None:
        order = np.argsort(relations.labels, kind="stable")
        labels = relations.labels[order]
        following = np.arange(len(order)) + 1
        starts = np.searchsorted(labels, labels, "left")
        following = np.where((following < len(order)) & (labels[following % len(order)] == labels), following, starts)
        several = following != np.arange(len(order))
        first, second = order[several], order[following[several]]
    else:
        pairs = relations.positives
        first, second = _each_once(pairs)
    rows = draw_rows(np.arange(len(first)), MOST, np.random.default_rng(seed))
    first, second = first[rows], second[rows]
    return first.astype(np.int64), second.astype(np.int64)


def _each_once(pairs: Rows) -> tuple[Rows, Rows]:
    """Return pairs with each item of either side once, or the first pair of each query where few would be left.

    A query whose first positive is taken gets its next positive, which keeps users who all bought one item.
    """
    firsts = _firsts(pairs, 0)
    taken = [_firsts(firsts, 1)]
    left = pairs
    while len(taken[-1]):
        is_free = ~np.isin(left[:, 0], taken[-1][:, 0]) & ~np.isin(left[:, 1], taken[-1][:, 1])
        left = left[is_free]
        taken.append(_firsts(_firsts(left, 0), 1))
    once = np.concatenate(taken)
    once = once if len(once) >= 4 * LEAST else firsts
    once = once[np.argsort(once[:, 0], kind="stable")] if len(taken) > 2 else once
    return once[:, 0], once[:, 1]


def _firsts(pairs: Rows, side: int) -> Rows:
    """Return the first pair of each item of a side, in the order of the pairs."""
    firsts: Rows = pairs[np.sort(np.unique(pairs[:, side], return_index=True)[1])]
    return firsts


def _same(first: Rows, second: Rows, relations: Relations) -> npt.NDArray[np.bool_]:
    """Return (m, m) bool: whether a candidate is the query itself, in one set."""
    if not relations.one_set:
        return np.zeros((len(first), len(second)), dtype=bool)
    same: npt.NDArray[np.bool_] = first[:, None] == second[None, :]
    return same
