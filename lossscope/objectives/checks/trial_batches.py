"""Small seeded batches on which an objective is tried: random, nearly converged, with rows or candidates added.

Float64. Objectives that take whole batches only (`square`) get pairs of unit embeddings, the others any S.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from lossscope.core.similarity import Mask, cosine, normalise, pair_mask
from lossscope.core.weights import Weights

from ..custom.embeddings import WIDTH, two_ends

SIZE = 8


@dataclass(frozen=True)
class Trial:
    """One direction of a batch: S (q, c), rows are queries, and its mask."""

    S: Tensor
    mask: Mask

    def weigh(self, objective: Any) -> Weights:
        """The objective on a copy of S."""
        found: Weights = objective(self.S.clone(), self.mask)
        return found

    def to(self, dtype: torch.dtype) -> Trial:
        """S, and embeddings where there are some, in another precision."""
        return Trial(self.S.to(dtype), replace(self.mask, info={k: v.to(dtype) for k, v in self.mask.info.items()}))

    def shuffled(self, rows: Tensor, columns: Tensor) -> Trial:
        """Queries and candidates in another order."""
        return Trial(self.S[rows][:, columns], self.mask.rows(rows).columns(columns))

    def stepped(self, q: int, c: int, step: float) -> Trial:
        """S[q, c] changed by a step; embeddings are turned so that, to first order, this alone changes."""
        if "queries" not in self.mask.info:
            S = self.S.clone()
            S[q, c] += step
            return Trial(S, self.mask)
        queries, candidates = self.mask.info["queries"].clone(), self.mask.info["candidates"]
        across = torch.linalg.pinv(torch.cat([candidates, queries[q : q + 1]]))[:, c]
        queries[q] = normalise(queries[q] + step * across)
        return paired(queries, candidates)


def trial(objective: Any, seed: int, late: bool = False, queries: int = SIZE, candidates: int = SIZE) -> Trial:
    """A random batch without ties whose rows are all usable; late: positives are well above most negatives."""
    random = torch.Generator().manual_seed(seed)
    if objective.square:
        images, noise = torch.randn(2, SIZE, WIDTH, generator=random, dtype=torch.float64)
        return paired(normalise(images), normalise((1.5 if late else 0.3) * images + noise))
    match = torch.zeros(queries, candidates, dtype=torch.bool)
    for q in range(queries):
        number = 1 if objective.positives == "one" else 1 + q % 3
        match[q, torch.randperm(candidates, generator=random)[:number]] = True
    valid = torch.rand(queries, candidates, generator=random) < 0.85
    valid |= match | (~match).cumsum(1).eq(1)  # the first negative always takes part
    S = 0.3 + 0.12 * torch.randn(queries, candidates, generator=random, dtype=torch.float64)
    return Trial((S + 0.4 * match * late).clamp(-0.99, 0.99), Mask(match, valid))


def paired(images: Tensor, captions: Tensor) -> Trial:
    """A whole batch of pairs of unit embeddings, (B, d) and (B, d), which go along."""
    mask = replace(pair_mask(torch.arange(len(images))), info={"queries": images, "candidates": captions})
    return Trial(cosine(images, captions), mask)


def constant(objective: Any, value: float, size: int = SIZE) -> Trial:
    """Every similarity the same, each query with a positive of its own."""
    if objective.square:
        first, second = torch.eye(2, WIDTH, dtype=torch.float64)
        turned = value * first + (1 - value**2) ** 0.5 * second
        return paired(first.repeat(size, 1), turned.repeat(size, 1))
    return Trial(torch.full((size, size), value, dtype=torch.float64), pair_mask(torch.arange(size)))


def with_candidates(batch: Trial, number: int, similarity: float) -> Trial:
    """As many more candidates, which take no part."""
    rows = len(batch.S)
    S = torch.cat([batch.S, batch.S.new_full((rows, number), similarity)], 1)
    absent = torch.zeros(rows, number, dtype=torch.bool)
    return Trial(S, Mask(torch.cat([batch.mask.match, absent], 1), torch.cat([batch.mask.valid, absent], 1)))


def with_easy_rows(batch: Trial, number: int) -> Trial:
    """As many more queries, each with a positive of its own at +1, all else at −1; the old rows do not see it."""
    wide = with_candidates(batch, number, -1.0)
    match = torch.eye(number, wide.S.shape[1], dtype=torch.bool).roll(batch.S.shape[1], 1)
    S = torch.where(match, 1.0, -1.0).to(wide.S)
    valid = torch.cat([wide.mask.valid, torch.ones_like(match)])
    return Trial(torch.cat([wide.S, S]), Mask(torch.cat([wide.mask.match, match]), valid))


def opposite(near: int, far: int, seed: int) -> Trial:
    """Pairs around one direction, hard to tell apart, and pairs around the opposite one, at about −1 from them."""
    return paired(*two_ends(near, far, seed))
