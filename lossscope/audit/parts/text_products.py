"""Products of pairs of texts: of sparse counts, of items, and of what one text leaves unsaid."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from lossscope.core.relations import NONE
from lossscope.core.types import Rows

from ..types import Floats, PairRows
from .material import Material
from .model_view import products
from .text_space import unit

_CHUNK = 1 << 15  # pairs whose sparse rows are gathered at a time


def sparse_product(a: Any, b: Any, rows: Rows, others: Rows) -> Floats:
    """Return a[rows] · b[others] of sparse matrices, (n,)."""
    result = np.empty(len(rows), np.float32)
    for start in range(0, len(rows), _CHUNK):
        part = slice(start, start + _CHUNK)
        result[part] = np.asarray(a[rows[part]].multiply(b[others[part]]).sum(1)).ravel()
    return result


def best_sparse_product(vectors: Any, rows: Rows, references: Rows) -> Floats:
    """Return the largest product of each sparse row with its references, itself left out, (n,); NaN without any."""
    best = np.full(len(rows), -np.inf, np.float32)
    for column in references.T:
        use = np.nonzero((column != NONE) & (column != rows))[0]
        best[use] = np.maximum(best[use], sparse_product(vectors, vectors, rows[use], column[use]))
    return np.where(np.isfinite(best), best, np.nan).astype(np.float32)


def item_product(material: Material, pairs: PairRows) -> Floats:
    """Return the cosine of the query's texts together with those of the candidate's items together, (n,).

    The candidate itself is left out of the query's texts, and stands for itself where it belongs to no item.
    """
    texts = material.texts.siblings
    lists = material.positives_of_queries
    sums = np.zeros((len(lists), texts.shape[1]), np.float32)
    for column in lists.T:
        rows = np.nonzero(column != NONE)[0]
        sums[rows] += texts[column[rows]]
    units = unit(sums)
    owner = material.positives_of_candidates[:, 0]
    own = np.where(owner[:, None] == NONE, texts, units[owner])
    value = products(units, own, pairs.left, pairs.right)
    among = np.nonzero((lists[pairs.left] == pairs.right[:, None]).any(1))[0]  # a pair that is known to match
    if len(among):
        rest = unit(sums[pairs.left[among]] - texts[pairs.right[among]])
        value[among] = (rest * texts[pairs.right[among]]).sum(1)
    empty = ~sums[pairs.left].any(1)
    value[empty] = np.nan
    return value


def unsaid_weight(material: Material, pairs: PairRows) -> Floats:
    """Return log(1 + weight of the candidate's phrases that no text of the query has), (n,); NaN without texts."""
    space, lists = material.texts, material.positives_of_queries
    rows, places = np.nonzero(lists != NONE)
    shape = len(lists), space.phrases.shape[0]
    belongs = sparse.csr_matrix((np.ones(len(rows), np.float32), (rows, lists[rows, places])), shape=shape)
    counts = (belongs @ space.phrases).tocsr()  # (N, P) in how many texts of the query a phrase is
    weights = sparse.diags(space.phrase_weights)
    weighted = (space.phrases @ weights).tocsr()
    total = np.asarray(weighted.sum(1)).ravel()
    result = np.empty(len(pairs), np.float32)
    for start in range(0, len(pairs), _CHUNK):
        left, right = pairs.left[start : start + _CHUNK], pairs.right[start : start + _CHUNK]
        among = (lists[left] == right[:, None]).any(1)  # a pair that is known to match: its own text is left out
        present = counts[left]
        if among.any():
            present = present - sparse.diags(among.astype(np.float32)) @ space.phrases[right]
        present.data = (present.data > 0).astype(np.float32)
        said = np.asarray(present.multiply(weighted[right]).sum(1)).ravel()
        result[start : start + _CHUNK] = np.log1p(np.maximum(total[right] - said, 0))
    result[(lists[pairs.left] == NONE).all(1)] = np.nan
    return result
