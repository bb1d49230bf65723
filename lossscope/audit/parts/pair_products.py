"""Compute products of vectors of pairs. Pairs are sorted by query, so that its vectors are read once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from lossscope.core.relations import NONE
from lossscope.core.types import Rows

from ..types import Floats, PairRows

_CHUNK = 1 << 11  # vectors gathered at a time


def products(a: Floats, b: Floats, rows: Rows, others: Rows) -> Floats:
    """Return a[rows] · b[others], (n,)."""
    return best_products(b, others[:, None], rows, lambda row: a[row : row + 1])


def nearest_reference(vectors: Floats, pairs: PairRows, references: Rows) -> Floats:
    """Return the largest cosine of each candidate with another reference of its query, (n,); NaN: none.

    Args:
        vectors: (M, d) unit rows of candidates and references.
        pairs: queries and candidates.
        references: (N, k) rows of the references of each query; −1 for none.
    """
    best = np.full(len(pairs), -np.inf, np.float32)
    for start, stop in _runs(pairs.left):
        rows = references[pairs.left[start]]
        rows = rows[rows != NONE]
        if not len(rows):
            continue
        candidates = pairs.right[start:stop]
        gathered, part = vectors[candidates], best[start:stop]
        for row in rows.tolist():
            cosines = gathered @ vectors[row]
            np.maximum(part, np.where(candidates == row, -np.inf, cosines), out=part)
    return np.where(np.isfinite(best), best, np.nan).astype(np.float32)


def best_products(vectors: Floats, rows: Rows, queries: Rows, vector_of: Callable[[int], Floats]) -> Floats:
    """Return the largest product of each query with its rows of `vectors`, (n,); NaN without a row.

    Pairs are sorted by query, so that its vector is read once: gathering takes most of the time.

    Args:
        vectors: (M, d).
        rows: (n, k) rows of them; −1 for none.
        queries: (n,) rows of the queries.
        vector_of: row of a query -> (1, d).
    """
    best = np.full(len(queries), np.nan, np.float32)
    for start, stop in _runs(queries):
        part = rows[start:stop]
        query = vector_of(int(queries[start]))[0]
        values = (vectors[part.ravel()] @ query).reshape(part.shape)
        values[part == NONE] = -np.inf
        best[start:stop] = values.max(1)
    return np.where(np.isfinite(best), best, np.nan).astype(np.float32)


def _runs(values: Rows) -> Iterator[tuple[int, int]]:
    """Yield start and stop of runs of equal values; a run is at most `_CHUNK` long."""
    edges = np.r_[0, np.nonzero(np.diff(values))[0] + 1, len(values)] if len(values) else np.zeros(1, np.int64)
    for start, stop in zip(edges.tolist(), edges[1:].tolist(), strict=False):
        for low in range(start, stop, _CHUNK):
            yield low, min(low + _CHUNK, stop)
