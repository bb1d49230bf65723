"""Do the right partners stand in other rows? Compare the nearest candidates by each half of the dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lossscope.core.facts import Missing, TooLittle
from lossscope.core.types import Rows

from ..types import Cure
from .items import Items
from .patient import Patient
from .remedies import Remedy, embeddings_of, paired_again
from .vectors import Vectors, draw_rows, unit_rows_of

_QUERIES, _FEW = 512, 128  # queries compared with all candidates; fewer where there are many
_TILE = 1 << 14  # candidates at a time
_LEAST_DIMENSIONS = 8
_MANY, _WIDEST = 1 << 15, 128  # with more candidates, only the widest directions are compared
_ROUNDING = 1e-5  # of a similarity
_USED = 1e-6  # of the variance of the widest direction; a thousandth of its width
LEAST = 16  # queries
_AGAIN = "with each query paired with the candidate that is nearest by the first half of the dimensions"
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Partners:
    """The nearest candidate of sampled queries by either half of the dimensions.

    A half is every other principal direction of both sides together. Neither half knows the other: in vectors without
    pairs they agree only by chance.
    """

    direction: str
    queries: Rows  # (q,) rows
    nearest: Rows  # (q,) row of the nearest candidate by the first half
    agree: Flags  # (q,) whether the second half names the same
    paired: Flags  # (q,) whether the second half names a stated positive, or a copy of it
    beside: Flags  # (q,) whether it is the nearest of the most similar other query by the second half

    @property
    def agreement(self) -> float:
        """Share of the queries whose nearest candidates agree."""
        return float(self.agree.mean())

    @property
    def agreement_of_groups(self) -> float:
        """The agreement of each query with its neighbour, which groups of similar items and hubs give alone.

        Vectors that know only the topic agree with any query of the topic as often as with themselves.
        """
        return float(self.beside.mean())

    @property
    def stated(self) -> float:
        """Share of the agreeing queries whose partner is a stated positive; 0 where none agrees."""
        return float((self.agree & self.paired).sum() / max(self.agree.sum(), 1))

    @property
    def recall(self) -> float:
        """Share of the queries whose stated positive is the nearest by the second half."""
        return float(self.paired.mean())

    @property
    def error(self) -> float:
        """Standard error of `agreement`."""
        return math.sqrt(max(self.agreement, 1 / len(self.agree)) / len(self.agree))


@dataclass(frozen=True)
class HalfSpaces:
    """Partners in both directions."""

    directions: tuple[Partners, ...]
    needs: ClassVar[tuple[type, ...]] = (Items,)

    @classmethod
    def of(cls, patient: Patient, items: Items) -> HalfSpaces:
        """Compare the halves. Raises Missing without embeddings of two sides, TooLittle of few rows or dimensions."""
        source, relations = items.source, items.source.relations
        if source.images is None or source.captions is None or relations.one_set:
            raise Missing("it has no two sides of embeddings", "embeddings")
        vectors = patient.part(Vectors)
        usable = vectors.finite_rows()
        directions = _directions(items)
        directions = directions[:, :_WIDEST] if max(items.whole) > _MANY else directions
        if directions.shape[1] < _LEAST_DIMENSIONS:
            raise TooLittle(f"its sides spread over {directions.shape[1]} directions; {_LEAST_DIMENSIONS} are needed")
        pairs = relations.positives
        pairs = pairs[usable[0][pairs[:, 0]] & usable[1][pairs[:, 1]]]
        if min(len(np.unique(pairs[:, 0])), len(np.unique(pairs[:, 1]))) < LEAST:
            raise TooLittle(f"it has fewer than {LEAST} pairs")
        sides = (vectors.first, vectors.second)
        labels = relations.sides.labels
        found = [partners_of(sides, pairs, directions, labels[0])]
        found.append(partners_of(sides[::-1], pairs[:, ::-1], directions, labels[1]))
        return cls(tuple(found))

    @property
    def best(self) -> Partners:
        """The direction whose halves agree more often; with several captions of an image, that of the captions."""
        return max(self.directions, key=lambda partners: partners.agreement)


def partners_of(sides: tuple[Tensor, ...], pairs: Rows, directions: Tensor, label: str) -> Partners:
    """Return the partners of queries of the first of two sides.

    Args:
        sides: (N, d) queries, (M, d) candidates.
        pairs: (n, 2) stated positives, whose rows are finite and not zero.
        directions: (d, k) principal directions, the widest first.
        label: of the direction from queries to candidates.
    """
    rng = np.random.default_rng(0)
    candidates = np.unique(pairs[:, 1])  # pairs permute stated positives, not mined negatives
    queries = draw_rows(np.unique(pairs[:, 0]), _FEW if len(candidates) > _MANY else _QUERIES, rng)
    halves = directions[:, ::2], directions[:, 1::2]
    of_queries = _unit(sides[0], queries)
    projected = [of_queries @ half for half in halves]
    nearest = [_Nearest(len(queries)), _Nearest(len(queries))]
    for start in range(0, len(candidates), _TILE):
        rows = candidates[start : start + _TILE]
        tile = _unit(sides[1], rows)
        for part, half, of_half in zip(nearest, halves, projected, strict=True):
            part.see(of_half @ torch.nn.functional.normalize(tile @ half, dim=1).T, rows)
    by_first, by_second = (part.rows for part in nearest)
    stated = _best_of_stated(sides, pairs, queries, halves[1]) >= nearest[1].best.numpy() - _ROUNDING
    neighbour = (of_queries @ of_queries.T).fill_diagonal_(-torch.inf).argmax(1).numpy()
    beside = by_first == by_second[neighbour]
    return Partners(label, queries, by_first, by_first == by_second, stated, beside)


def _best_of_stated(sides: tuple[Tensor, ...], pairs: Rows, queries: Rows, half: Tensor) -> npt.NDArray[np.float32]:
    """Return (q,): the highest similarity of each query with a stated positive, by half of the dimensions."""
    pairs = pairs[np.isin(pairs[:, 0], queries)]
    candidates = torch.nn.functional.normalize(_unit(sides[1], pairs[:, 1]) @ half, dim=1)
    similarity = ((_unit(sides[0], pairs[:, 0]) @ half) * candidates).sum(1).numpy()
    best = np.full(len(queries), -np.inf, np.float32)
    np.maximum.at(best, np.searchsorted(queries, pairs[:, 0]), similarity)
    return best


class _Nearest:
    """The nearest candidate of each query over tiles."""

    def __init__(self, queries: int) -> None:
        self.best = torch.full((queries,), -torch.inf)
        self.rows: Rows = np.zeros(queries, np.int64)

    def see(self, S: Tensor, rows: Rows) -> None:
        """Take a tile (queries, candidates) whose columns are these rows."""
        best, columns = S.max(1)
        is_nearer = (best > self.best).numpy()
        self.rows[is_nearer] = rows[columns.numpy()[is_nearer]]
        self.best = torch.maximum(self.best, best)


def _directions(items: Items) -> Tensor:
    """Return the used principal directions (d, k) of both sides of the sample together."""
    first, second = embeddings_of(items.split)
    both = torch.cat([first - first.mean(0), second - second.mean(0)]).double()
    values, directions = torch.linalg.eigh(both.T @ both)
    used = values.flip(0) > _USED * values[-1]
    wide: Tensor = directions.flip(1)[:, used].float()
    return wide


def _unit(side: Tensor, rows: Rows) -> Tensor:
    return unit_rows_of(side, rows).float()


def partners_restored(patient: Patient) -> Sequence[Remedy]:
    """Return the source with the partners that half of the dimensions names; none without two embedded sides."""
    if not patient.has(HalfSpaces):
        return ()
    partners, split = patient.part(HalfSpaces).best, patient.part(Items).source
    pairs = np.stack([partners.queries, partners.nearest], 1)[partners.agree]
    pairs = pairs[np.unique(pairs[:, 1], return_index=True)[1]]
    if len(pairs) < 2:
        return ()
    pairs = pairs if partners.direction == split.relations.sides.labels[0] else pairs[:, ::-1]
    statistic = f"recall@1 {partners.direction} by the second half"
    cure = Cure(_AGAIN, statistic, partners.recall, partners.agreement, max(partners.agreement, partners.recall))
    return (Remedy(_AGAIN, paired_again(split, pairs), cure),)
