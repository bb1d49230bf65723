"""Find the most similar candidates of each query in blocks of rows, without a matrix of all pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from lossscope.core.types import Progress, Rows

from ..types import Floats

_ENTRIES = 1 << 26  # similarities of a block of rows
_CHUNK = 1 << 13  # pairs with lists gathered at a time


@dataclass(frozen=True, eq=False)
class TopLists:
    """The k most similar candidates of each of n queries, the most similar first."""

    rows: Rows  # (n, k)
    values: Floats  # (n, k)

    def rank(self, queries: Rows, candidates: Rows, similarity: Floats) -> Floats:
        """Return how many candidates of each query's list lie above this candidate, (n,); k if all do.

        A candidate of the list keeps the similarity of the list: the last bits of another product may differ.

        Args:
            queries: (n,) rows.
            candidates: (n,) rows.
            similarity: (n,) of each candidate, used if it is not in the list.
        """
        rank = np.empty(len(queries), np.float32)
        for start in range(0, len(queries), _CHUNK):
            part = slice(start, start + _CHUNK)
            values, is_candidate = self.values[queries[part]], self.rows[queries[part]] == candidates[part, None]
            level = np.where(
                is_candidate.any(1), values[np.arange(len(is_candidate)), is_candidate.argmax(1)], similarity[part]
            )
            rank[part] = (values > level[:, None]).sum(1)
        return rank


def top_lists(
    queries: Floats | None,
    candidates: Floats | None,
    matrix: Floats | None,
    k: int,
    one_set: bool = False,
    progress: Progress | None = None,
) -> TopLists:
    """Return the k most similar candidates of each query.

    Args:
        queries: (n, d); None with a matrix.
        candidates: (m, d).
        matrix: (n, m) similarities; None with embeddings.
        k: entries of a list, at most the number of candidates.
        one_set: whether queries are the candidates; then no item is in its own list.
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
