"""One model's similarities, looked at pair by pair: its own, those of positives, of neighbours, and what is typical."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.relations import NONE
from lossscope.core.types import Rows
from lossscope.errors import InputError

from ..search.list_lengths import reverse_top
from ..search.top_lists import TopLists, top_lists
from ..types import Floats, NotKnown, PairRows

if TYPE_CHECKING:
    from .material import Material

_CHUNK = 1 << 11  # vectors that are gathered at a time
_NEAREST = 10  # that the density round an item is the mean of


@dataclass(eq=False)
class ModelView:
    """A source of the audited items, its rows in the order of the audit."""

    name: str
    first: Floats | None  # (N, d) unit rows; None where only similarities are known
    second: Floats | None  # (M, d)
    matrix: Floats | None  # (N, M), where only similarities are known
    material: Material
    top: int  # candidates in the list of the most similar of each query
    _last: tuple[PairRows, Floats] | None = field(default=None, init=False, repr=False)

    @classmethod
    def of(cls, source: SplitEmbeddings, material: Material, top: int) -> ModelView:
        """Return the view of a source. Raises InputError where it is of other items, or scores pairs one by one."""
        if source.pair_scorer is not None:
            raise InputError(
                f"{source.name} must have embeddings or a matrix of similarities to be audited; it scores pairs one by "
                "one. Write its matrix to a dump first"
            )
        for ids, own, what in (
            (source.image_ids, material.image_ids, "first"), (source.caption_ids, material.caption_ids, "second"),
        ):  # fmt: skip
            if list(ids) != own:
                raise InputError(
                    f"{source.name} must be of the items of the audit; its {what} side has {len(ids)} items, the audit's "
                    f"{len(own)}, or their ids differ. Take the split that it was computed on: --split"
                )
        if source.images is None or source.captions is None:
            assert source.similarity is not None
            return cls(source.name, None, None, source.similarity.float().numpy(), material, top)
        return cls(source.name, source.images.float().numpy(), source.captions.float().numpy(), None, material, top)

    def similarity(self, pairs: PairRows) -> Floats:
        """Return s of each pair, (n,); those of the pairs that were asked for last are kept."""
        if self._last is None or self._last[0] is not pairs:
            self._last = pairs, self._similarity(pairs)
        return self._last[1]

    def _similarity(self, pairs: PairRows) -> Floats:
        if self.matrix is not None:
            picked: Floats = self.matrix[pairs.left, pairs.right]
            return picked
        assert self.first is not None
        assert self.second is not None
        first = self.first
        return best_products(self.second, pairs.right[:, None], pairs.left, lambda row: first[row : row + 1])

    def nearest_sibling(self, pairs: PairRows) -> Floats:
        """Return the largest cosine of the candidate with a positive of the query, (n,); NaN without any."""
        if self.second is None:
            raise NotKnown("it has similarities only, no embeddings")
        return nearest_reference(self.second, pairs, self.material.positives_of_queries)

    def nearest_query(self, pairs: PairRows) -> Floats:
        """Return the largest cosine of the query with an item that the candidate is a positive of, (n,); NaN: none."""
        if self.first is None:
            raise NotKnown("it has similarities only, no embeddings")
        first, owners = self.first, self.material.positives_of_candidates[pairs.right]
        owners = np.where(owners == pairs.left[:, None], NONE, owners)
        return best_products(first, owners, pairs.left, lambda row: first[row : row + 1])

    @cached_property
    def best_positive(self) -> Floats:
        """(N,) similarity of the best positive of each item of the first side; NaN without any."""
        lists = self.material.positives_of_queries
        best = np.full(len(lists), -np.inf, np.float32)
        for column in lists.T:
            rows = np.nonzero(column != NONE)[0]
            best[rows] = np.maximum(best[rows], self.similarity(PairRows(rows, column[rows])))
        return np.where(np.isfinite(best), best, np.nan).astype(np.float32)

    @cached_property
    def top_of_queries(self) -> TopLists:
        """The most similar candidates of each item of the first side."""
        return top_lists(self.first, self.second, self.matrix, self.top, self._is_one_set, self.material.progress)

    @cached_property
    def top_of_candidates(self) -> TopLists:
        """The most similar items of the first side of each item of the second."""
        matrix = None if self.matrix is None else self.matrix.T
        top = reverse_top(self.material.relations, self.top)
        return top_lists(self.second, self.first, matrix, top, self._is_one_set, self.material.progress)

    @property
    def _is_one_set(self) -> bool:
        return self.material.relations.one_set

    def density_of_queries(self, rows: Rows) -> Floats:
        """Return the mean similarity of items of the first side with their 10 nearest candidates."""
        return self.top_of_queries.values[rows, :_NEAREST].mean(1)

    def density_of_candidates(self, rows: Rows) -> Floats:
        """Return the mean similarity of items of the second side with their 10 nearest of the first."""
        return self.top_of_candidates.values[rows, :_NEAREST].mean(1)


def products(a: Floats, b: Floats, rows: Rows, others: Rows) -> Floats:
    """Return a[rows] · b[others], (n,)."""
    return best_products(b, others[:, None], rows, lambda row: a[row : row + 1])


def nearest_reference(vectors: Floats, pairs: PairRows, references: Rows) -> Floats:
    """Return the largest cosine of each candidate with a reference of its query, itself left out, (n,); NaN without any.

    Args:
        vectors: (M, d) unit rows of candidates and references.
        pairs: queries and candidates.
        references: (N, k) rows of the references of each query; −1 for none.
    """
    best = np.full(len(pairs), -np.inf, np.float32)
    for start, stop in _runs(pairs.left):
        own = references[pairs.left[start]]
        own = own[own != NONE]
        if not len(own):
            continue
        candidates = pairs.right[start:stop]
        gathered, part = vectors[candidates], best[start:stop]
        for one in own.tolist():
            cosines = gathered @ vectors[one]
            np.maximum(part, np.where(candidates == one, -np.inf, cosines), out=part)
    return np.where(np.isfinite(best), best, np.nan).astype(np.float32)


def best_products(vectors: Floats, rows: Rows, queries: Rows, vector_of: Callable[[int], Floats]) -> Floats:
    """Return the largest product of each query with some rows of `vectors`, (n,); NaN without any.

    Pairs of one query follow each other, so that its vector is read once: gathering is what this costs.

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
    """Yield where runs of equal values start and stop, none longer than what is gathered at a time."""
    edges = np.r_[0, np.nonzero(np.diff(values))[0] + 1, len(values)] if len(values) else np.zeros(1, np.int64)
    for start, stop in zip(edges.tolist(), edges[1:].tolist(), strict=False):
        for low in range(start, stop, _CHUNK):
            yield low, min(low + _CHUNK, stop)
