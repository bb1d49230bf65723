"""The most similar candidates of every query, found in blocks of rows: no matrix of all pairs is kept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from lossscope.core.types import Progress, Rows

from ..types import Floats

_ENTRIES = 1 << 26  # similarities of a block of rows
_ROWS = 1 << 13  # lists that are compared at a time
_ROUNDING = np.float32(1e-6)  # by which a product differs when it is computed in another order


@dataclass(frozen=True, eq=False)
class TopLists:
    """The k most similar candidates of each of n queries, the most similar first."""

    rows: Rows  # (n, k)
    values: Floats  # (n, k)

    def rank(self, queries: Rows, similarity: Floats) -> Floats:
        """Return how many candidates of each query lie above a similarity, (n,); k where all of the list do."""
        above = np.empty(len(queries), np.float32)
        for start in range(0, len(queries), _ROWS):
            part = slice(start, start + _ROWS)
            limit = similarity[part, None] + _ROUNDING  # a pair of the list is not above itself
            above[part] = (self.values[queries[part]] > limit).sum(1)
        return above


def top_lists(
    queries: Floats | None,
    candidates: Floats | None,
    matrix: Floats | None,
    k: int,
    one_set: bool = False,
    progress: Progress | None = None,
) -> TopLists:
    """Return the k most similar candidates of every query.

    Args:
        queries: (n, d); None where similarities are given.
        candidates: (m, d).
        matrix: (n, m) similarities; None where embeddings are given.
        k: entries of a list; fewer where there are fewer candidates.
        one_set: whether queries are the candidates, so that none is in its own list.
        progress: called with (label, done, of).
    """
    if matrix is None:
        assert queries is not None
        assert candidates is not None
        n, m = len(queries), len(candidates)
        left, right = torch.from_numpy(queries), torch.from_numpy(candidates).T
    else:
        n, m = matrix.shape
        left, right = torch.from_numpy(np.ascontiguousarray(matrix)), None
    k = min(k, m - one_set)
    rows, values = np.empty((n, k), np.int64), np.empty((n, k), np.float32)
    step = max(1, _ENTRIES // m)
    for start in range(0, n, step):
        block = left[start : start + step]
        S = block.clone() if right is None else block @ right
        if one_set:
            S[torch.arange(len(S)), torch.arange(start, start + len(S))] = -torch.inf
        best = S.topk(k, dim=1)
        rows[start : start + step], values[start : start + step] = best.indices.numpy(), best.values.numpy()
        if progress:
            progress("most similar candidates", min(start + step, n), n)
    return TopLists(rows, values)
