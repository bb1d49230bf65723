"""What a step did with each candidate, read from its gradient: which were pulled, which pushed, which had no weight.

The gradient with respect to an embedding is Σ_j w_j e_j over embeddings that it was compared with, since a loss sees
them through products (or distances) alone; embeddings of a trial are linearly independent, so the w_j are unique.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .trial_embeddings import TrialEmbeddings

_RANK = 1e-9  # relative to the largest singular value: below it, embeddings are copies, which share a weight
SOFT = 0.5  # of the pull on a query's own candidate: what is pulled less is a soft target, such as label smoothing


@dataclass(frozen=True)
class Pulls:
    """Weights of everything in the gradients of queries; negative ones pull, positive ones push."""

    candidates: Tensor  # (B, B)
    queries: Tensor  # (B, B); on the diagonal, what normalisation took away
    negatives: Tensor | None  # (B, B, k) mined for any query
    residual: float  # share of the gradients that is no such sum
    smallest: float  # below which a weight is a rounding error

    @property
    def active(self) -> Tensor:
        """(B,) which queries have a gradient at all."""
        return self.strongest > self.smallest

    @property
    def strongest(self) -> Tensor:
        """(B,) largest weight of any candidate or mined negative."""
        parts = [self.candidates] if self.negatives is None else [self.candidates, self.negatives.flatten(1)]
        return torch.cat(parts, 1).abs().amax(1)

    @property
    def pulled(self) -> Tensor:
        """(B, B) candidates that a query is drawn to."""
        return self.candidates < -self.smallest

    @property
    def pushed(self) -> Tensor:
        """(B, B) candidates that a query is driven away from."""
        return self.candidates > self.smallest

    @property
    def pushed_queries(self) -> Tensor:
        """(B, B) other queries that a query is driven away from."""
        return (self.queries > self.smallest) & ~torch.eye(len(self.queries), dtype=torch.bool)

    @property
    def own(self) -> Tensor:
        """(B,) how strongly each query is drawn to its own candidate."""
        return -self.candidates.diagonal()

    @property
    def strayed(self) -> Tensor:
        """(B,) which queries are drawn to another candidate, or are moved and not drawn to their own."""
        return self.active & ((self.own <= self.smallest) | (self.softness >= SOFT))

    @property
    def softness(self) -> Tensor:
        """(B,) the strongest pull on another candidate, as a share of that on the query's own."""
        other = ~torch.eye(len(self.candidates), dtype=torch.bool)
        pull = torch.where(self.pulled & other, -self.candidates, 0.0).amax(1)
        return pull / self.own.clamp(min=1e-300)

    @property
    def own_negatives(self) -> Tensor:
        """(B, k) weights of the negatives that were mined for the query itself."""
        assert self.negatives is not None, "own_negatives needs mined negatives"
        return self.negatives.diagonal(dim1=0, dim2=1).T


def read_pulls(gradients: Tensor, trial: TrialEmbeddings, precision: float) -> Pulls:
    """Return the weights in the gradients (B, d) of queries.

    Args:
        gradients: with respect to the queries of a trial.
        trial: what the step was called with.
        precision: relative size of a rounding error in the gradients.
    """
    gradients = gradients.double()
    basis, size = trial.basis, trial.size
    weights = torch.linalg.lstsq(basis.T, gradients.T, rcond=_RANK, driver="gelsd").solution.T
    residual = float((weights @ basis - gradients).norm() / gradients.norm().clamp(min=1e-300))
    mined = weights[:, 2 * size :]
    negatives = None if trial.negatives is None else mined.unflatten(1, trial.negatives.shape[:2])
    return Pulls(
        weights[:, size : 2 * size], weights[:, :size], negatives, residual, precision * float(weights.abs().max())
    )
