"""Ranks from whole rows of S: of the best positive, of the ten best candidates, and the place of every positive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .measures import NEVER, measures
from .results import Retrieval

_TOP = 10  # candidates of which `hits` tells whether they are positives


@dataclass(frozen=True)
class RankedRows:
    """Queries that were ranked; −inf marks an unscored pair, which is no hit."""

    ranks: Tensor  # (q,) candidates strictly above the best positive; the last rank where no positive has a score
    ties: Tensor  # (q,) non-relevant candidates equal to the best positive
    hits: Tensor  # (q, 10) bool, relevance of the ten best candidates, earlier rows first among equals
    relevant: Tensor  # (q,) number of positives
    positions: Tensor | None = None  # (q, p) ascending places of the positives, NEVER behind the last
    mixed_ties: Tensor | None = None  # (q,) bool, whether a non-relevant candidate equals any positive

    def result(self, cutoffs: Sequence[int]) -> Retrieval:
        """Return ranks as arrays, with measures where places are known."""
        ranks, ties, hits, relevant = (x.cpu().numpy() for x in (self.ranks, self.ties, self.hits, self.relevant))
        if self.positions is None or self.mixed_ties is None:
            return Retrieval(ranks, ties, hits, relevant)
        values = measures(ranks, self.positions.cpu().numpy(), relevant, cutoffs)
        return Retrieval(ranks, ties, hits, relevant, values, self.mixed_ties.cpu().numpy())


def rank_rows(S: Tensor, match: Tensor, candidates: int, positions: bool = False) -> RankedRows:
    """Rank the candidates of some queries.

    Args:
        S: (q, c), −inf where a pair has no score, or is no candidate at all.
        match: (q, c) bool, positives.
        candidates: number of candidates of each query, c or fewer.
        positions: also find the place of every positive, which takes sorting the rows.
    """
    best = S.masked_fill(~match, -torch.inf).amax(1, keepdim=True)
    scored = best[:, 0] > -torch.inf
    ranks = torch.gt(S, best).sum(1).where(scored, candidates - 1)
    ties = ((best == S) & ~match).sum(1).where(scored, 0)
    top, relevant = min(_TOP, S.shape[1]), match.sum(1)
    if positions:
        ordered = S.sort(dim=1, descending=True, stable=True)
        found = match.gather(1, ordered.indices) & (ordered.values > -torch.inf)
        mixed = _mixed_ties(ordered.values, found)
        return RankedRows(ranks, ties, found[:, :top], relevant, _places(found, relevant), mixed)
    order = S.argsort(dim=1, descending=True, stable=True)[:, :top] if S.shape[1] <= 64 else _top_columns(S, top)
    hits = match.gather(1, order) & S.gather(1, order).gt(-torch.inf)
    return RankedRows(ranks, ties, hits, relevant)


def _places(found: Tensor, relevant: Tensor) -> Tensor:
    """Return where each row of `found` (q, c) is true, in rows that are padded with NEVER."""
    rows, columns = found.nonzero(as_tuple=True)
    slots = (found.cumsum(1) - 1)[rows, columns]
    positions = columns.new_full((len(found), max(int(relevant.max()), 1)), NEVER)
    positions[rows, slots] = columns
    return positions


def _mixed_ties(values: Tensor, found: Tensor) -> Tensor:
    """Return (q,) whether neighbours in the order have one value, and only one of them is a positive."""
    return ((values[:, 1:] == values[:, :-1]) & (found[:, 1:] != found[:, :-1])).any(1)


def _top_columns(S: Tensor, k: int) -> Tensor:
    """Return the columns of the k largest entries of each row, earlier columns first among equals."""
    slack = min(4 * k, S.shape[1])
    values, columns = S.topk(slack, dim=1)
    if bool((values[:, k - 1] == values[:, -1]).any()):
        return S.argsort(dim=1, descending=True, stable=True)[:, :k]
    by_column = columns.argsort(dim=1)
    values, columns = values.gather(1, by_column), columns.gather(1, by_column)
    return columns.gather(1, values.argsort(dim=1, descending=True, stable=True))[:, :k]
