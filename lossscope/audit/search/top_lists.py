"""The most similar candidates of every query, found in blocks of rows: no matrix of all pairs is kept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from lossscope.core.types import Progress, Rows

from ..types import Floats

_ENTRIES = 1 << 26  # similarities of a block of rows
_CHUNK = 1 << 13  # pairs whose lists are gathered at a time


@dataclass(frozen=True, eq=False)
class TopLists:
    """The k most similar candidates of each of n queries, the most similar first."""

    rows: Rows  # (n, k)
    values: Floats  # (n, k)

    def rank(self, queries: Rows, candidates: Rows, similarity: Floats) -> Floats:
        """Return how many other candidates of each query lie above one, (n,); k where all of the list do.

        A candidate of the list has the similarity that the list gives it: the last bits of another product may differ.

        Args:
            queries: (n,) rows.
            candidates: (n,) rows.
            similarity: (n,) of each candidate, for those that are not in the list.
        """
        rank = np.empty(len(queries), np.float32)
        for start in range(0, len(queries), _CHUNK):
            part = slice(start, start + _CHUNK)
            values, own = self.values[queries[part]], self.rows[queries[part]] == candidates[part, None]
            level = np.where(own.any(1), values[np.arange(len(own)), own.argmax(1)], similarity[part])
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
