"""Seeded embeddings on which a step is tried: unit vectors, linearly independent, with similarities that are chosen.

A gradient with respect to a query is then one sum of the others' embeddings, so its weights can be read from it
(`pulls`). All similarities are close to one another, so that no temperature hides a candidate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

POSITIVE = 0.02  # mean similarity of a query with its positive
SPREAD = 0.0075  # of similarities, at most
HARD = 0.25  # similarity of mined negatives that are more similar than the positive
NEAR = 0.9  # similarity of positives late in training, and of the hardest mined negatives
_FREE = 8  # dimensions in which no embedding lies


@dataclass(frozen=True)
class TrialEmbeddings:
    """A whole batch, float64: candidate i is the positive of query i."""

    queries: Tensor  # (B, d)
    candidates: Tensor  # (B, d)
    negatives: Tensor | None = None  # (B, k, d) mined for each query

    @property
    def size(self) -> int:
        """B."""
        return len(self.queries)

    @property
    def basis(self) -> Tensor:
        """(n, d) all embeddings: queries, candidates, then negatives query by query."""
        parts = [self.queries, self.candidates]
        return torch.cat(parts if self.negatives is None else [*parts, self.negatives.flatten(0, 1)])

    def share(self, rank: int, processes: int) -> TrialEmbeddings:
        """Return the rows of one process."""
        rows = slice(self.size * rank // processes, self.size * (rank + 1) // processes)
        negatives = None if self.negatives is None else self.negatives[rows]
        return TrialEmbeddings(self.queries[rows], self.candidates[rows], negatives)

    def rounded(self, dtype: torch.dtype) -> TrialEmbeddings:
        """Return the same in float64, every number rounded to another type."""
        negatives = None if self.negatives is None else self.negatives.to(dtype).double()
        return TrialEmbeddings(self.queries.to(dtype).double(), self.candidates.to(dtype).double(), negatives)

    def backwards(self) -> TrialEmbeddings:
        """Return the same pairs in the opposite order."""
        negatives = None if self.negatives is None else self.negatives.flip(0)
        return TrialEmbeddings(self.queries.flip(0), self.candidates.flip(0), negatives)

    def with_copy(self) -> TrialEmbeddings:
        """Return the same with the first candidate in the place of the second, too."""
        candidates = self.candidates.clone()
        candidates[1] = candidates[0]
        return replace(self, candidates=candidates)


def trial_embeddings(
    size: int, mined: int, seed: int, hard: float = 0.0, late: bool = False, cone: float = 0.0
) -> TrialEmbeddings:
    """Return a batch of pairs, whose similarities with everything else are at most SPREAD from 0.

    Args:
        size: B.
        mined: negatives of each query, 0 for none.
        seed: of the random numbers.
        hard: about the similarity of a query with its mined negatives; not together with `late`.
        late: as late in training: similarities of positives are near 1.
        cone: similarity that all have in addition, s → cone + (1 − cone) s, for losses with a margin.
    """
    generator = torch.Generator().manual_seed(seed)
    n = size * (2 + mined)
    narrow = 0.1 if late or hard > 0.5 else 1.0
    spread = SPREAD * narrow / max(1.0, (n / 64) ** 0.5)  # what keeps the matrix positive definite
    gram = spread * (2 * torch.rand(n, n, generator=generator, dtype=torch.float64) - 1).tril(-1)
    rows = torch.arange(size)
    above = NEAR if late else POSITIVE
    gram[size + rows, rows] += above
    for number in range(mined if hard else 0):
        gram[2 * size + rows * mined + number, rows] += hard
        for other in range(number):  # what is near to a query is near to what is near to it
            gram[2 * size + rows * mined + number, 2 * size + rows * mined + other] += hard**2
    gram = gram + gram.T + torch.eye(n, dtype=torch.float64)
    embeddings = _vectors(cone + (1 - cone) * gram, generator)
    negatives = embeddings[2 * size :].reshape(size, mined, -1) if mined else None
    return TrialEmbeddings(embeddings[:size].clone(), embeddings[size : 2 * size].clone(), negatives)


def embeddings_with(S: Tensor, seed: int) -> TrialEmbeddings:
    """Return a batch of pairs with the similarities S (B, B), and with their mean within each side.

    Args:
        S: small enough for unit vectors to have them, as rows whose sums are below 1/2.
        seed: of the coordinates.
    """
    size = len(S)
    gram = torch.full((2 * size, 2 * size), float(S.mean()), dtype=torch.float64).fill_diagonal_(1.0)
    gram[:size, size:], gram[size:, :size] = S, S.T
    embeddings = _vectors(gram, torch.Generator().manual_seed(seed))
    return TrialEmbeddings(embeddings[:size].clone(), embeddings[size:].clone())


def _vectors(gram: Tensor, generator: torch.Generator) -> Tensor:
    """Return unit vectors with the similarities of a (n, n) Gram matrix, in directions that are drawn."""
    n = len(gram)
    rotation = torch.linalg.qr(torch.randn(n + _FREE, n, generator=generator, dtype=torch.float64)).Q
    vectors: Tensor = torch.linalg.cholesky(gram) @ rotation.T
    return vectors
