"""Rows as hashes of their texts: 8 bytes a query and a positive in memory; negatives and keys in temporary files."""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from lossscope.core.near_text import rows_of_near_copies, without_edges
from lossscope.core.normal_form import normal_form, normal_forms, numbers_of_words

from ..rows.row_block import RowBlock, TextLists
from .hashes import EMPTY, PART, Flags, Hashes, is_in, pair_hashes, text_hashes
from .near_keys import KEYS, near_keys
from .near_search import NearDuplicates
from .text_lengths import TextLengths

_IS_EMPTY, _IS_LONG, _IS_NEAR_COPY, _IS_CUT, _IS_SCORED = 1, 2, 4, 8, 16
_CUT = 4  # positives of a row that are all one character: a text that was read as a list
_OF_POSITIVE, _PER_POSITIVE = np.int64(0x2545F4914F6CDD1D), np.int64(0x9E3779B9)


class RowHashes:
    """Hashes of the rows of one split, and which rows have faults that their texts alone show; to be closed."""

    def __init__(self, max_words: int) -> None:
        self._max_words = max_words
        self._queries, self._plain_queries, self._positives = array("q"), array("q"), array("q")
        self._lengths = TextLengths()
        self._positive_counts, self._negative_counts, self._faults = array("I"), array("I"), bytearray()
        self._negatives: Any = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as this object lives
        self._near_keys: Any = tempfile.TemporaryFile()  # noqa: SIM115
        self.near_duplicates = NearDuplicates(np.zeros(0, bool), np.zeros(0, np.int64), 0)  # until they are searched

    def __len__(self) -> int:
        return len(self._queries)

    def add(self, block: RowBlock) -> None:
        """Add rows."""
        lists = TextLists(block.queries, [1] * len(block)), block.positives, block.negatives
        forms = normal_forms(list(chain.from_iterable(texts.texts for texts in lists)))
        hashes = np.fromiter(map(hash, forms), np.int64, len(forms))
        first, last = len(block), len(block) + len(block.positives.texts)
        self._queries.frombytes(hashes[:first].tobytes())
        self._plain_queries.extend(map(hash, map(without_edges, forms[:first])))
        self._positives.frombytes(hashes[first:last].tobytes())
        self._negatives.write(hashes[last:].tobytes())
        self._near_keys.write(near_keys(forms[first:last]).tobytes())
        self._positive_counts.extend(block.positives.counts)
        self._negative_counts.extend(block.negatives.counts)
        lengths = np.fromiter(map(len, forms), np.int64, len(forms))
        negatives = np.array(block.negatives.counts, np.int64)
        self._lengths.add(lengths[first:last], lengths[last:], hashes[last:], negatives)
        faults = self._faults_of(forms, hashes, lengths, lists)
        parts = TextLists(forms[first:last], block.positives.counts), TextLists(forms[last:], block.negatives.counts)
        faults[rows_of_near_copies(*parts)] |= _IS_NEAR_COPY
        cut = [row for row, texts in enumerate(parts[0]) if len(texts) >= _CUT and self.is_cut(texts)]
        faults[cut] |= _IS_CUT
        if block.is_scored:
            faults |= _IS_SCORED
        self._faults += faults.tobytes()

    @cached_property
    def queries(self) -> Hashes:
        """(n,) hash of each query."""
        return np.frombuffer(self._queries, np.int64)

    @cached_property
    def plain_queries(self) -> Hashes:
        """(n,) hash of each query without marks at its ends."""
        return np.frombuffer(self._plain_queries, np.int64)

    @cached_property
    def sorted_queries(self) -> Hashes:
        """Sorted hashes of the queries, empty texts included."""
        return np.sort(self.queries)

    @cached_property
    def positives(self) -> Hashes:
        """Hashes of the positives of all rows, one row after the other."""
        return np.frombuffer(self._positives, np.int64)

    @cached_property
    def positive_counts(self) -> npt.NDArray[np.uint32]:
        """(n,) number of positives of each row."""
        return np.frombuffer(self._positive_counts, np.uint32)

    @cached_property
    def documents(self) -> Hashes:
        """Sorted hashes of positives that are no empty texts."""
        documents: Hashes = self.positives[self.positives != EMPTY]
        documents.sort()
        return documents

    @cached_property
    def pairs(self) -> Hashes:
        """Sorted hashes of (query, positive), of all rows."""
        return self._pairs_of(self.queries)

    @cached_property
    def plain_pairs(self) -> Hashes:
        """Sorted hashes of (query without marks at its ends, positive), of all rows."""
        return self._pairs_of(self.plain_queries)

    def _pairs_of(self, queries: Hashes) -> Hashes:
        pairs = np.empty(len(self.positives), np.int64)
        for rows, span in self._parts():
            pairs[span] = pair_hashes(np.repeat(queries[rows], self.positive_counts[rows]), self.positives[span])
        pairs.sort()
        return pairs

    @property
    def has_empty(self) -> Flags:
        """(n,) whether the query, a positive or a negative is an empty text."""
        return (np.frombuffer(self._faults, np.uint8) & _IS_EMPTY).astype(bool)

    @property
    def has_long(self) -> Flags:
        """(n,) whether one of these texts has more words than the limit."""
        return (np.frombuffer(self._faults, np.uint8) & _IS_LONG).astype(bool)

    @property
    def has_near_copy(self) -> Flags:
        """(n,) whether a negative is a near copy of a positive of its row."""
        return (np.frombuffer(self._faults, np.uint8) & _IS_NEAR_COPY).astype(bool)

    @property
    def lacks_positive(self) -> Flags:
        """(n,) whether a row has no positive, and no score that says so."""
        lacking: Flags = (self.positive_counts == 0) & ~self._is_scored
        return lacking

    @property
    def is_negative_pair(self) -> Flags:
        """(n,) whether a score says that a row has no positive."""
        negative: Flags = (self.positive_counts == 0) & self._is_scored
        return negative

    @property
    def _is_scored(self) -> Flags:
        return (np.frombuffer(self._faults, np.uint8) & _IS_SCORED).astype(bool)

    def near_keys(self, column: int) -> Hashes:
        """(m,) a key of each positive, see `near_keys`."""
        keys = np.empty(len(self.positives), np.int64)
        self._near_keys.seek(0)
        for start in range(0, len(keys), PART):
            part = np.frombuffer(self._near_keys.read(8 * KEYS * PART), np.int64)
            keys[start : start + PART] = part[column::KEYS]
        return keys

    @property
    def has_short(self) -> Flags:
        """(n,) whether positives are the characters of a text, or negatives are far too short to be texts."""
        short = (np.frombuffer(self._faults, np.uint8) & _IS_CUT).astype(bool) | self._lengths.only_fragments
        letters = self._lengths.letters
        letters = letters[~is_in(letters, self.documents)]  # labels and answers are texts
        for rows, negatives in self._iter_negatives() if len(letters) else ():
            short[rows[is_in(negatives, letters)]] = True
        return short

    @staticmethod
    def is_cut(positives: Sequence[str]) -> bool:
        """Return whether the positives of a row are the characters of one text."""
        return len(positives) >= _CUT and all(len(text.strip()) <= 1 for text in positives)

    @property
    def row_hashes(self) -> Hashes:
        """(n,) hash of each query with its positives, in any order of them."""
        sums = np.zeros(len(self), np.int64)
        for rows, span in self._parts():
            counts = self.positive_counts[rows]
            with_some = np.flatnonzero(counts)
            if len(with_some):
                starts = (np.cumsum(counts, dtype=np.int64) - counts)[with_some]
                terms = self.positives[span] * _OF_POSITIVE + _PER_POSITIVE
                sums[rows.start + with_some] = np.add.reduceat(terms, starts)
        return pair_hashes(self.queries, sums)

    @cached_property
    def own_as_negative(self) -> Flags:
        """(n,) whether a negative is a positive of the same query, in any row."""
        return self._known_negatives[0]

    @cached_property
    def others_as_negative(self) -> Flags:
        """(n,) whether a negative answers the query by another row, see `are_positives`, and none is its own."""
        return self._known_negatives[1]

    def are_positives(self, query: str, documents: Sequence[str]) -> tuple[Flags, Flags]:
        """Return which documents are positives of a query, and which others are by a row that says so in other words.

        Such a row has a query that differs in marks at its ends alone, or the document as query of this positive.
        """
        hashes = text_hashes(documents)
        plain = np.full(len(hashes), hash(without_edges(normal_form(query))), np.int64)
        return self._classify(np.broadcast_to(text_hashes([query]), hashes.shape), plain, hashes)

    def close(self) -> None:
        """Remove the temporary files."""
        self._negatives.close()
        self._near_keys.close()

    @cached_property
    def _known_negatives(self) -> tuple[Flags, Flags]:
        flags = np.zeros((2, len(self)), dtype=bool)
        for rows, negatives in self._iter_negatives():
            classes = self._classify(self.queries[rows], self.plain_queries[rows], negatives)
            for flag, wrong in zip(flags, classes, strict=True):
                flag[rows[wrong]] = True
        return flags[0], flags[1]

    def _classify(self, queries: Hashes, plain: Hashes, documents: Hashes) -> tuple[Flags, Flags]:
        known = is_in(documents, self.documents)
        same_query, other_query = known.copy(), known.copy()
        same_query[known] = is_in(pair_hashes(queries[known], documents[known]), self.pairs)
        other_query[known] = is_in(pair_hashes(plain[known], documents[known]), self.plain_pairs)
        reverse = is_in(pair_hashes(documents, queries), self.pairs) & (documents != EMPTY) & (queries != EMPTY)
        return same_query, (other_query | reverse) & ~same_query

    def _parts(self) -> Iterator[tuple[slice, slice]]:
        """Yield rows and their positives, some thousand rows at a time."""
        end = 0
        for start in range(0, len(self), PART):
            rows = slice(start, min(start + PART, len(self)))
            begin, end = end, end + int(self.positive_counts[rows].sum())
            yield rows, slice(begin, end)

    def _iter_negatives(self) -> Iterator[tuple[npt.NDArray[np.int64], Hashes]]:
        """Yield rows and the hashes of their negatives, some thousand rows at a time."""
        counts = np.frombuffer(self._negative_counts, np.uint32)
        self._negatives.seek(0)
        for start in range(0, len(self), PART):
            part = counts[start : start + PART]
            rows = np.repeat(np.arange(start, start + len(part)), part)
            yield rows, np.frombuffer(self._negatives.read(8 * len(rows)), np.int64)

    def _faults_of(
        self, forms: Sequence[str], hashes: Hashes, lengths: npt.NDArray[np.int64], lists: Sequence[TextLists]
    ) -> npt.NDArray[np.uint8]:
        """Return the faults of rows, from the normal forms of all their texts."""
        faulty = np.where(hashes == EMPTY, _IS_EMPTY, 0).astype(np.uint8)
        long = np.flatnonzero(lengths > 2 * self._max_words)  # words have a letter, and a blank between them
        if len(long):
            words = numbers_of_words([forms[index] for index in long.tolist()])
            faulty[long[np.array(words) > self._max_words]] |= _IS_LONG
        faults = np.zeros(len(lists[0].counts), np.uint8)
        if faulty.any():
            owners = np.concatenate([np.repeat(np.arange(len(faults)), texts.counts) for texts in lists])
            np.bitwise_or.at(faults, owners, faulty)
        return faults
