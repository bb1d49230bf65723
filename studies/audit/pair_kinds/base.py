"""Define data sets with known matches, and the words of made-up ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from lossscope.audit.parts.material import Material
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.relations import Relations
from lossscope.core.sides import QUERY_DOCUMENT
from lossscope.core.types import Rows
from lossscope.datasets.base import Split, Texts

Flags = npt.NDArray[np.bool_]
Matches = Callable[[Rows, Rows], Flags]  # rows of queries and of candidates, (n,) each -> whether they match


@dataclass(frozen=True, eq=False)
class DataSet:
    """Items with labels, and their true matches."""

    kind: str
    name: str
    split: Split
    matches: Matches
    judged: tuple[Rows, Rows] | None = None  # the pairs with a known truth; None: all
    sources: tuple[SplitEmbeddings, ...] = ()
    training: Split | None = None
    seed: int = 0

    @cached_property
    def material(self) -> Material:
        """The material of its audit."""
        return Material.of(self.sources, self.split, self.training)


@dataclass
class Words:
    """Made-up words with frequencies of Zipf's law, and made-up names."""

    seed: int
    size: int = 3000
    random: np.random.Generator = field(init=False)
    words: list[str] = field(init=False)

    def __post_init__(self) -> None:
        self.random = np.random.default_rng([self.seed, 77])
        self.words = []
        known: set[str] = set()
        while len(self.words) < self.size:
            word = self._word(int(self.random.integers(1, 4)))
            if word not in known:
                known.add(word)
                self.words.append(word)
        weight = 1 / (5 + np.arange(self.size))
        self.shares = weight / weight.sum()

    def _word(self, syllables: int) -> str:
        parts = []
        for _ in range(syllables):
            onset = self.random.choice(
                ["b", "c", "d", "f", "g", "h", "l", "m", "n", "p", "r", "s", "t", "v", "st", "tr", "pl"]
            )
            parts.append(str(onset) + str(self.random.choice(["a", "e", "i", "o", "u", "ai", "ou"])))
        return "".join(parts) + str(self.random.choice(["", "n", "r", "s", "t", "l", "nd"]))

    def text(self, length: int, topic: Rows | None = None) -> list[str]:
        """Return words; with a topic, half of them are of the topic."""
        chosen = self.random.choice(self.size, length, p=self.shares)
        if topic is not None:
            is_of_topic = self.random.random(length) < 0.5
            chosen = np.where(is_of_topic, self.random.choice(topic, length), chosen)
        return [self.words[word] for word in chosen]

    def topic(self, size: int = 25) -> Rows:
        """Return the rows of the words of a topic."""
        return np.asarray(self.random.choice(self.size, size, replace=False), np.int64)

    def names(self, number: int, parts: int = 2) -> list[str]:
        """Return different made-up names."""
        names: dict[str, None] = {}
        while len(names) < number:
            names[" ".join(self._word(2).capitalize() for _ in range(parts))] = None
        return list(names)


def sentence(words: Sequence[str]) -> str:
    """Return words with a capital in front and a full stop behind."""
    text = " ".join(words)
    return f"{text[:1].upper()}{text[1:]}."


def text_split(queries: Sequence[str], documents: Sequence[str], positives: Sequence[tuple[int, int]]) -> Split:
    """Return a split of queries and documents."""
    pairs = np.array(positives, np.int64).reshape(-1, 2)
    relations = Relations(len(queries), len(documents), pairs, QUERY_DOCUMENT)
    ids = [f"q{row}" for row in range(len(queries))], [f"d{row}" for row in range(len(documents))]
    return Split("train", Texts(list(queries)), list(documents), None, *ids, "0", relations=relations)


def by_table(truth: Flags) -> Matches:
    """Return matches of a table of all pairs, (N, M) bool."""
    return lambda first, second: np.asarray(truth[first, second])


def by_keys(queries: Sequence[object], documents: Sequence[object]) -> Matches:
    """Return matches of equal keys; a document may have a set of keys, and None matches nothing."""
    numbers: dict[object, int] = {}
    rows = np.array([-1 if key is None else numbers.setdefault(key, len(numbers)) for key in queries])
    columns = [
        {numbers.get(key, -2) for key in (keys if isinstance(keys, frozenset) else (keys,))} for keys in documents
    ]
    width = max(map(len, columns))
    table = np.full((len(columns), width), -2)
    for row, keys in enumerate(columns):
        table[row, : len(keys)] = sorted(keys)
    return lambda first, second: np.asarray((rows[first][:, None] == table[second]).any(1))


def of_rows(kind: str, name: str, rows: Sequence[tuple[str, str, object]], words: Words) -> DataSet:
    """Return the data set of rows of query, document and key, shuffled; pairs of equal keys match."""
    shuffled = [rows[row] for row in words.random.permutation(len(rows))]
    queries, documents, keys = ([row[column] for row in shuffled] for column in range(3))
    split = text_split(queries, documents, [(row, row) for row in range(len(rows))])
    return DataSet(kind, name, split, by_keys(keys, keys), seed=words.seed)
