"""Which pairs could match? All pairs of a small set; in a large set the most similar ones, by models and by texts."""

from __future__ import annotations

import numpy as np

from lossscope.core.types import Rows

from ..parts.material import Material
from ..parts.query_texts import QueryTexts
from ..parts.text_space import TextSpace
from ..types import PairRows
from .known import are_known
from .list_lengths import ALL_PAIRS, reverse_top
from .top_lists import TopLists, top_lists

_RARE = 1000  # texts with the same rare word, at most
_SHARING = 20  # candidates of each query by rare words
_ROWS = 1 << 12  # queries with products computed at a time


def candidate_pairs(material: Material, top: int) -> PairRows:
    """Return pairs that are no known matches, in order of rows; of one set each pair in both orders.

    Args:
        material: what the audit knows of both sides.
        top: in a large set, candidates of each query for each kind of similarity.
    """
    relations = material.relations
    N, M = relations.first, relations.second
    if N * M <= ALL_PAIRS:
        keys = np.arange(N * M, dtype=np.int64)
    else:
        lists = [*_of_models(material, top), *_of_texts(material, top)]
        keys = np.concatenate([np.zeros(0, np.int64), *lists])
        keys = np.sort(np.r_[keys, keys % M * M + keys // M] if relations.one_set else keys)
        keys = keys[np.diff(keys, prepend=-1) > 0]
    return without_known(material, PairRows(keys // M, keys % M))


def without_known(material: Material, pairs: PairRows) -> PairRows:
    """Return the pairs that are no known matches, without pairs of an item with itself."""
    keep = ~are_known(material.relations, pairs)
    return PairRows(pairs.left[keep], pairs.right[keep])


def _of_models(material: Material, top: int) -> list[Rows]:
    """Return keys of the pairs in the lists of each model."""
    M, reverse = material.relations.second, reverse_top(material.relations, top)
    keys = []
    for model in material.models:
        keys += [_keys(model.top_of_queries, M, top), _turned_keys(model.top_of_candidates, M, reverse)]
    return keys


def _of_texts(material: Material, top: int) -> list[Rows]:
    """Return keys of the pairs by texts: candidates near the sum of a query's texts, and the other way round."""
    if not material.has(QueryTexts):
        return []
    shared = _of_rare_words(material)
    texts = material.part(QueryTexts)
    queries, candidates = texts.units, texts.space.siblings
    M, one_set = material.relations.second, material.relations.one_set
    turned = reverse_top(material.relations, top)
    forward = top_lists(queries, candidates, None, top, one_set, material.progress)
    reverse = top_lists(candidates, queries, None, turned, one_set, material.progress)
    return [_keys(forward, M, top), _turned_keys(reverse, M, turned), *shared]


def _of_rare_words(material: Material) -> list[Rows]:
    """Return keys of the candidates that share most rare words, such as names, with a query; none without texts."""
    space = material.part(TextSpace)
    if space.first_words is None:
        return []
    rare = np.nonzero(space.words.getnnz(0) <= _RARE)[0]
    first, second = space.first_words[:, rare], space.words[:, rare].T.tocsr()
    M, keys = material.relations.second, []
    for start in range(0, first.shape[0], _ROWS):
        products = (first[start : start + _ROWS] @ second).tocsr()
        for row in range(products.shape[0]):
            part = slice(*products.indptr[row : row + 2])
            best = np.argsort(-products.data[part], kind="stable")[:_SHARING]
            keys.append((start + row) * M + products.indices[part][best].astype(np.int64))
        if material.progress:
            material.progress("candidates by rare words", min(start + _ROWS, first.shape[0]), first.shape[0])
    return keys


def _keys(lists: TopLists, M: int, most: int) -> Rows:
    rows = lists.rows[:, :most]
    queries = np.repeat(np.arange(len(rows), dtype=np.int64), rows.shape[1])
    return queries * M + rows.ravel()


def _turned_keys(lists: TopLists, M: int, most: int) -> Rows:
    rows = lists.rows[:, :most]
    candidates = np.repeat(np.arange(len(rows), dtype=np.int64), rows.shape[1])
    return rows.ravel() * M + candidates
