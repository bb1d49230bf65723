"""What does a model say of a pair: its similarity, that of positives, of neighbours, and of a typical pair?"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.facts import Missing
from lossscope.core.relations import NONE
from lossscope.core.types import Rows
from lossscope.errors import InputError

from ..search.list_lengths import default_top, reverse_top
from ..search.top_lists import TopLists, top_lists
from ..types import Floats, PairRows
from .items import AuditedItems, other_items
from .pair_products import best_products, nearest_reference, products

_NEAREST = 10  # neighbours, whose mean similarity is the density round an item


@dataclass(eq=False)
class ModelView:
    """A source of the audited items, its rows in the order of the audit."""

    name: str
    first: Floats | None  # (N, d) unit rows; None where only similarities are known
    second: Floats | None  # (M, d)
    matrix: Floats | None  # (N, M), where only similarities are known
    items: AuditedItems
    top: int | None  # candidates of each query that the search wants; None: as many as signals count
    _last: list[tuple[PairRows, Floats]] = field(default_factory=list, init=False, repr=False)

    @classmethod
    def of(cls, source: SplitEmbeddings, items: AuditedItems, top: int | None = None) -> ModelView:
        """Return the view of a source. Raises InputError if it has other items, or scores pairs one by one."""
        if source.pair_scorer is not None:
            raise InputError(
                f"{source.name} must have embeddings or a matrix of similarities for an audit; it scores pairs "
                "one by one. Write its matrix to a dump first"
            )
        for ids, audited, what in (
            (source.image_ids, items.image_ids, "first"), (source.caption_ids, items.caption_ids, "second"),
        ):  # fmt: skip
            if list(ids) != audited:
                raise other_items(source.name, ids, audited, what)
        if source.images is None or source.captions is None:
            assert source.similarity is not None
            return cls(source.name, None, None, source.similarity.float().numpy(), items, top)
        return cls(source.name, source.images.float().numpy(), source.captions.float().numpy(), None, items, top)

    def similarity(self, pairs: PairRows) -> Floats:
        """Return s of each pair, (n,). Most signals begin with it: the last pairs are cached, in both orders."""
        for known, similarity in self._last:
            if known is pairs:
                return similarity
        self._last = [*self._last[-1:], (pairs, self._similarity(pairs))]
        return self._last[-1][1]

    def _similarity(self, pairs: PairRows) -> Floats:
        if self.matrix is not None:
            picked: Floats = self.matrix[pairs.left, pairs.right]
            return picked
        assert self.first is not None
        assert self.second is not None
        return products(self.first, self.second, pairs.left, pairs.right)

    def nearest_sibling(self, pairs: PairRows) -> Floats:
        """Return the largest cosine of the candidate with a positive of the query, (n,); NaN without a positive."""
        if self.second is None:
            raise Missing("it has similarities only, no embeddings")
        return nearest_reference(self.second, pairs, self.items.positives_of_queries)

    def nearest_query(self, pairs: PairRows) -> Floats:
        """Return the largest cosine of the query with an item whose positive is the candidate, (n,); NaN: none."""
        if self.first is None:
            raise Missing("it has similarities only, no embeddings")
        first, owners = self.first, self.items.positives_of_candidates[pairs.right]
        owners = np.where(owners == pairs.left[:, None], NONE, owners)
        return best_products(first, owners, pairs.left, lambda row: first[row : row + 1])

    def positive(self, pairs: PairRows) -> Floats:
        """Return s₊, the similarity of the query's best positive other than the candidate, (n,); NaN: none."""
        row, best, second = self._best_positives
        positive: Floats = np.where(row[pairs.left] == pairs.right, second[pairs.left], best[pairs.left])
        return positive

    @cached_property
    def _best_positives(self) -> tuple[Rows, Floats, Floats]:
        """Return row and similarity of each first-side item's best positive, and the second best similarity, (N,)."""
        lists = self.items.positives_of_queries
        values = np.full(lists.shape, -np.inf, np.float32)
        for nth, column in enumerate(lists.T):
            rows = np.nonzero(column != NONE)[0]
            values[rows, nth] = self.similarity(PairRows(rows, column[rows]))
        queries = np.arange(len(lists))
        first = values.argmax(1)
        row, best = lists[queries, first], values[queries, first]
        values[queries, first] = -np.inf
        second = values.max(1)
        best, second = (
            np.where(np.isfinite(similarities), similarities, np.nan).astype(np.float32)
            for similarities in (best, second)
        )
        return row, best, second

    @cached_property
    def top_of_queries(self) -> TopLists:
        """The most similar candidates of each item of the first side."""
        k = max(self.top or 0, self._default_length)
        return top_lists(self.first, self.second, self.matrix, k, self._is_one_set, self.items.progress)

    @cached_property
    def top_of_candidates(self) -> TopLists:
        """The most similar items of the first side of each item of the second."""
        matrix = None if self.matrix is None else self.matrix.T
        relations = self.items.relations
        k = max(reverse_top(relations, length) for length in (self.top or 0, self._default_length))
        return top_lists(self.second, self.first, matrix, k, self._is_one_set, self.items.progress)

    def rank_of_candidates(self, pairs: PairRows) -> Floats:
        """Return how many candidates lie above each pair's, (n,), at most the default length of a list.

        So a search of more candidates does not change the signals.
        """
        rank = self.top_of_queries.rank(pairs.left, pairs.right, self.similarity(pairs))
        return np.minimum(rank, self._default_length)

    def rank_of_queries(self, pairs: PairRows) -> Floats:
        """Return how many queries lie above each pair's among those of its candidate, (n,), counted likewise."""
        rank = self.top_of_candidates.rank(pairs.right, pairs.left, self.similarity(pairs))
        return np.minimum(rank, reverse_top(self.items.relations, self._default_length))

    @property
    def _default_length(self) -> int:
        return default_top(self.items.relations)

    @property
    def _is_one_set(self) -> bool:
        return self.items.relations.one_set

    def density_of_queries(self, rows: Rows) -> Floats:
        """Return the mean similarity of items of the first side with their 10 nearest candidates."""
        density: Floats = self.top_of_queries.values[rows, :_NEAREST].mean(1)
        return density

    def density_of_candidates(self, rows: Rows) -> Floats:
        """Return the mean similarity of items of the second side with their 10 nearest of the first."""
        density: Floats = self.top_of_candidates.values[rows, :_NEAREST].mean(1)
        return density
