"""Compute products of pairs of texts: of sparse counts, of items, and of phrases that only the candidate has."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from lossscope.core.relations import NONE
from lossscope.core.types import Rows

from ..types import Floats, PairRows
from .pair_products import products
from .query_texts import QueryTexts
from .text_names import TextNames
from .text_space import unit

_CHUNK = 1 << 15  # pairs with sparse rows gathered at a time


def sparse_product(a: Any, b: Any, rows: Rows, others: Rows) -> Floats:
    """Return a[rows] · b[others] of sparse matrices, (n,)."""
    result = np.empty(len(rows), np.float32)
    for start in range(0, len(rows), _CHUNK):
        part = slice(start, start + _CHUNK)
        result[part] = np.asarray(a[rows[part]].multiply(b[others[part]]).sum(1)).ravel()
    return result


def best_sparse_product(vectors: Any, rows: Rows, references: Rows) -> Floats:
    """Return the largest product of each sparse row with another of its references, (n,); NaN without a reference."""
    best = np.full(len(rows), -np.inf, np.float32)
    for column in references.T:
        use = np.nonzero((column != NONE) & (column != rows))[0]
        best[use] = np.maximum(best[use], sparse_product(vectors, vectors, rows[use], column[use]))
    return np.where(np.isfinite(best), best, np.nan).astype(np.float32)


def item_product(texts: QueryTexts, pairs: PairRows) -> Floats:
    """Return the cosine of the sum of the query's texts with the sum of those of the candidate's item, (n,).

    The candidate is left out of the query's texts. A candidate without an item stands for itself; a candidate of
    several items takes the first. NaN if either side has no known words.
    """
    siblings = texts.space.siblings
    value = products(texts.units, texts.of_candidates, pairs.left, pairs.right)
    among = np.nonzero(is_own(texts, pairs))[0]
    if len(among):
        rest = texts.sums[pairs.left[among]] - siblings[pairs.right[among]]
        alone = (texts.positives[pairs.left[among]] != NONE).sum(1) == 1  # nothing but rounding is left
        value[among] = np.where(alone, np.nan, (unit(rest) * siblings[pairs.right[among]]).sum(1))
    queries, candidates = texts.has_words
    value[~(queries[pairs.left] & candidates[pairs.right])] = np.nan
    return value


def unsaid_weight(texts: QueryTexts, pairs: PairRows) -> Floats:
    """Return log(1 + weight of the candidate's phrases that no text of the query has), (n,); NaN without words.

    The candidate is left out of the query's texts.
    """
    phrases = texts.space.phrases
    result = np.empty(len(pairs), np.float32)
    for start in range(0, len(pairs), _CHUNK):
        part = pairs.part(start, start + _CHUNK)
        is_text_of_query = is_own(texts, part)
        present = texts.phrase_counts[part.left]
        if is_text_of_query.any():
            present = present - sparse.diags(is_text_of_query.astype(np.float32)) @ phrases[part.right]
        present.data = (present.data > 0).astype(np.float32)
        shared = np.asarray(present.multiply(texts.weighted_phrases[part.right]).sum(1)).ravel()
        result[start : start + _CHUNK] = np.log1p(np.maximum(texts.phrase_weight[part.right] - shared, 0))
    others = (texts.positives[pairs.left] != NONE).sum(1) - is_own(texts, pairs)
    result[(others == 0) | (texts.phrase_weight[pairs.right] == 0)] = np.nan
    return result


def name_product(names: TextNames, pairs: PairRows) -> Floats:
    """Return the cosine of the query's names with those of the candidate, (n,); NaN if either has no name.

    The candidate is left out of the query's texts.
    """
    result = np.empty(len(pairs), np.float32)
    for start in range(0, len(pairs), _CHUNK):
        part = pairs.part(start, start + _CHUNK)
        queries = names.counts[part.left]
        of_query = (names.positives[part.left] == part.right[:, None]).any(1)
        if of_query.any():
            queries = queries - sparse.diags(of_query.astype(np.float32)) @ names.second[part.right]
        queries.data = (queries.data > 0).astype(np.float32)
        shared = np.asarray(queries.multiply(names.weighted[part.right]).sum(1)).ravel()
        lengths = np.sqrt((queries @ names.weights) * names.weight_of_second[part.right])
        result[start : start + _CHUNK] = np.where(lengths > 0, shared / np.where(lengths > 0, lengths, 1), np.nan)
    return result


def is_own(texts: QueryTexts, pairs: PairRows) -> npt.NDArray[np.bool_]:
    """Return (n,) whether the candidate is one of the query's texts, as in a pair that is known to match."""
    is_among: npt.NDArray[np.bool_] = (texts.positives[pairs.left] == pairs.right[:, None]).any(1)
    return is_among
