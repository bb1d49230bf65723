"""Which names and numbers does each text have?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from lossscope.core.facts import Missing
from lossscope.core.relations import NONE
from lossscope.core.types import Rows

from .material import Material

_TOKEN = re.compile(r"[^\W_]+(?:[.,:/-](?=\d)[^\W_]+)*")  # a word, or a number with its marks: 3.5, 12:30, 2024-05-01
_CODE = re.compile(r"\b[A-Z]{1,3}[ -]\d+\b")  # a number with letters: A 116, which differs from B 116
_BEFORE_SENTENCE = frozenset(".!?:;\"'“”‘’([\n–—-")  # marks after which any word has a capital
_CAPITALS = 0.5  # share of a word's uses within sentences that are capitalised; from here on it is a name
_TITLE = 0.6  # share of capitalised words; from here on a text is a title, whose capitals say nothing


@dataclass(frozen=True, eq=False)
class TextNames:
    """Names and numbers of N queries with their positives, and of M candidates; of one set, of the query alone."""

    counts: Any  # (N, E) sparse, the number of each query's texts with a name
    second: Any  # (M, E) sparse 0/1
    weights: npt.NDArray[np.float64]  # (E,) inverse document frequency
    positives: Rows  # (N, k) rows of the counted positives; −1 where a query has fewer

    @classmethod
    def of(cls, material: Material) -> TextNames:
        """Find names in the texts of both sides. Raises Missing if the first side has no texts."""
        first = material.first_texts
        if first is None or material.split is None:
            raise Missing("its first side has no texts")
        second = material.split.captions
        texts = [*first, *second]
        columns = {name: column for column, name in enumerate(sorted(find_names(texts)))}
        matrix = _matrix(texts, columns)
        frequency = np.asarray(matrix.sum(0)).ravel()
        weights = np.log((1 + len(texts)) / (1 + frequency)) + 1
        positives = material.positives_of_queries
        if material.relations.one_set:  # the other items of a label have names of their own
            positives = np.full((len(first), 1), NONE, np.int64)
        rows, nth = np.nonzero(positives != NONE)
        shape = len(first), len(second)
        belongs = sparse.csr_matrix((np.ones(len(rows), np.float32), (rows, positives[rows, nth])), shape=shape)
        counts = (matrix[: len(first)] + belongs @ matrix[len(first) :]).tocsr()
        return cls(counts, matrix[len(first) :], weights, positives)

    @cached_property
    def weighted(self) -> Any:
        """(M, E) sparse, the weight of each name of each candidate."""
        return (self.second @ sparse.diags(self.weights)).tocsr()

    @cached_property
    def weight_of_second(self) -> npt.NDArray[np.float64]:
        """(M,) weight of all names of each candidate."""
        return np.asarray(self.weighted.sum(1), np.float64).ravel()


def find_names(texts: Sequence[str]) -> set[str]:
    """Return the names and numbers of texts, in small letters.

    A number has a digit. A name is a word with a capital in at least half of its uses. Starts of sentences and titles
    do not count, as their words have capitals anyway.

    >>> sorted(find_names(["We met Ada in Rome in 1843.", "who is ada?", "A cat met us.", "Room B 12 is shut."]))
    ['12', '1843', 'ada', 'b', 'b 12', 'rome']
    """
    capital: Counter[str] = Counter()
    total: Counter[str] = Counter()
    numbers: set[str] = set()
    for text in texts:
        tokens = list(_TOKEN.finditer(text))
        numbers.update(code.casefold() for code in _CODE.findall(text))
        is_title = len(tokens) > 3 and sum(token[0][0].isupper() for token in tokens) > _TITLE * len(tokens)
        for token in tokens:
            word = token[0]
            if any(character.isdigit() for character in word):
                numbers.add(word.casefold())
            elif not is_title and _is_within_sentence(text, token.start()):
                total[word.casefold()] += 1
                capital[word.casefold()] += word[0].isupper() and word != "I"
    return numbers | {word for word, count in capital.items() if count and count >= _CAPITALS * total[word]}


def _is_within_sentence(text: str, start: int) -> bool:
    before = text[max(start - 4, 0) : start].rstrip(" ")
    return bool(before) and before[-1] not in _BEFORE_SENTENCE


def _matrix(texts: Iterable[str], columns: dict[str, int]) -> Any:
    """Return (n, E) sparse 0/1: which names each text has."""
    indices: list[int] = []
    ends = [0]
    for text in texts:
        words = {token[0].casefold() for token in _TOKEN.finditer(text)}
        words.update(code.casefold() for code in _CODE.findall(text))
        indices += sorted(columns[word] for word in words if word in columns)
        ends.append(len(indices))
    shape = len(ends) - 1, max(len(columns), 1)
    return sparse.csr_matrix((np.ones(len(indices), np.float32), np.array(indices, np.int64), np.array(ends)), shape)
