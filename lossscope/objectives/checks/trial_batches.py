"""Small seeded batches on which objectives are tested: random, nearly converged, with queries or candidates added.

All are float64. Objectives that take whole batches only (`square`) get pairs of unit embeddings, the others any S.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from lossscope.core.similarity import Mask, cosine, normalise, pair_mask
from lossscope.core.weights import Weights

from ..custom.embeddings import WIDTH, opposite_pairs

SIZE = 8


@dataclass(frozen=True)
class TrialBatch:
    """One direction of a batch; rows are queries."""

    S: Tensor  # (q, c)
    mask: Mask

    def evaluate(self, objective: Any) -> Weights:
        """Return the Weights of the objective on a copy of S."""
        weights: Weights = objective(self.S.clone(), self.mask)
        return weights

    def to(self, dtype: torch.dtype) -> TrialBatch:
        """Return a copy with S, and embeddings where there are some, in another precision."""
        info = {name: value.to(dtype) for name, value in self.mask.info.items()}
        return TrialBatch(self.S.to(dtype), replace(self.mask, info=info))

    def permute(self, rows: Tensor, columns: Tensor) -> TrialBatch:
        """Return a copy with queries and candidates in another order."""
        return TrialBatch(self.S[rows][:, columns], self.mask.rows(rows).columns(columns))

    def with_step(self, q: int, c: int, step: float) -> TrialBatch:
        """Add a step to S[q, c]; a query embedding is turned so that, to first order, only this entry changes."""
        if "queries" not in self.mask.info:
            S = self.S.clone()
            S[q, c] += step
            return TrialBatch(S, self.mask)
        queries, candidates = self.mask.info["queries"].clone(), self.mask.info["candidates"]
        direction = torch.linalg.pinv(torch.cat([candidates, queries[q : q + 1]]))[:, c]
        queries[q] = normalise(queries[q] + step * direction)
        return pair_batch(queries, candidates)


def random_batch(
    objective: Any, seed: int, late: bool = False, queries: int = SIZE, candidates: int = SIZE
) -> TrialBatch:
    """Return a random batch without ties, whose rows are all usable.

    Args:
        objective: its `square` and `positives` decide on the kind of batch.
        seed: of the random numbers.
        late: as late in training, with positives well above most negatives.
        queries: q, unless `square`.
        candidates: c, unless `square`.
    """
    generator = torch.Generator().manual_seed(seed)
    if objective.traits.square:
        images, noise = torch.randn(2, SIZE, WIDTH, generator=generator, dtype=torch.float64)
        return pair_batch(normalise(images), normalise((1.5 if late else 0.3) * images + noise))
    match = torch.zeros(queries, candidates, dtype=torch.bool)
    for q in range(queries):
        number = 1 if objective.traits.positives == "one" else 1 + q % 3
        match[q, torch.randperm(candidates, generator=generator)[:number]] = True
    valid = torch.rand(queries, candidates, generator=generator) < 0.85
    valid |= match | (~match).cumsum(1).eq(1)  # the first negative is always valid
    S = 0.3 + 0.12 * torch.randn(queries, candidates, generator=generator, dtype=torch.float64)
    return TrialBatch((S + 0.4 * match * late).clamp(-0.99, 0.99), Mask(match, valid))


def pair_batch(images: Tensor, captions: Tensor) -> TrialBatch:
    """Return a whole batch of pairs of unit embeddings, (B, d) and (B, d), which are in the mask."""
    mask = replace(pair_mask(torch.arange(len(images))), info={"queries": images, "candidates": captions})
    return TrialBatch(cosine(images, captions), mask)


def constant_batch(objective: Any, value: float, size: int = SIZE) -> TrialBatch:
    """Return a batch of pairs in which all similarities are equal."""
    if objective.traits.square:
        first, second = torch.eye(2, WIDTH, dtype=torch.float64)
        rotated = value * first + (1 - value**2) ** 0.5 * second
        return pair_batch(first.repeat(size, 1), rotated.repeat(size, 1))
    return TrialBatch(torch.full((size, size), value, dtype=torch.float64), pair_mask(torch.arange(size)))


def add_candidates(batch: TrialBatch, number: int, similarity: float) -> TrialBatch:
    """Add candidates that are not valid."""
    rows = len(batch.S)
    S = torch.cat([batch.S, batch.S.new_full((rows, number), similarity)], 1)
    absent = torch.zeros(rows, number, dtype=torch.bool)
    return TrialBatch(S, Mask(torch.cat([batch.mask.match, absent], 1), torch.cat([batch.mask.valid, absent], 1)))


def add_easy_queries(batch: TrialBatch, number: int) -> TrialBatch:
    """Add queries whose positive is at +1 and all else at −1; the new positives are not valid for the old queries."""
    wide = add_candidates(batch, number, -1.0)
    match = torch.eye(number, wide.S.shape[1], dtype=torch.bool).roll(batch.S.shape[1], 1)
    S = torch.where(match, 1.0, -1.0).to(wide.S)
    valid = torch.cat([wide.mask.valid, torch.ones_like(match)])
    return TrialBatch(torch.cat([wide.S, S]), Mask(torch.cat([wide.mask.match, match]), valid))


def opposite_batch(near: int, far: int, seed: int) -> TrialBatch:
    """Return a batch of `opposite_pairs`: some around one direction, some around the opposite one."""
    return pair_batch(*opposite_pairs(near, far, seed))
