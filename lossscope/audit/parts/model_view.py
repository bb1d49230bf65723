"""One model's similarities, looked at pair by pair: its own, those of positives, of neighbours, and what is typical."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.relations import NONE
from lossscope.core.types import Rows
from lossscope.errors import InputError

from ..search.top_lists import TopLists, top_lists
from ..types import Floats, NotKnown, PairRows

if TYPE_CHECKING:
    from .material import Material

_CHUNK = 1 << 16  # pairs whose vectors are gathered at a time
_NEAREST = 10  # that the density round an item is the mean of


@dataclass(eq=False)
class ModelView:
    """A source of the audited items, its rows in the order of the audit."""

    name: str
    first: Floats | None  # (N, d) unit rows; None where only similarities are known
    second: Floats | None  # (M, d)
    matrix: Floats | None  # (N, M), where only similarities are known
    material: Material
    top: int  # entries of the lists of the most similar

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
        """Return s of each pair, (n,)."""
        if self.matrix is not None:
            picked: Floats = self.matrix[pairs.left, pairs.right]
            return picked
        assert self.first is not None
        assert self.second is not None
        return products(self.first, self.second, pairs.left, pairs.right)

    def nearest_sibling(self, pairs: PairRows) -> Floats:
        """Return the largest cosine of the candidate with a positive of the query, (n,); NaN without any."""
        if self.second is None:
            raise NotKnown("it has similarities only, no embeddings")
        return best_product(self.second, pairs.right, self.material.positives_of_queries[pairs.left])

    def nearest_query(self, pairs: PairRows) -> Floats:
        """Return the largest cosine of the query with an item that the candidate is a positive of, (n,); NaN: none."""
        if self.first is None:
            raise NotKnown("it has similarities only, no embeddings")
        return best_product(self.first, pairs.left, self.material.positives_of_candidates[pairs.right])

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
        return top_lists(self.second, self.first, matrix, self.top, self._is_one_set, self.material.progress)

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
    result = np.empty(len(rows), np.float32)
    left, right = torch.from_numpy(a), torch.from_numpy(b)
    for start in range(0, len(rows), _CHUNK):
        part = slice(start, start + _CHUNK)
        x, y = left[torch.from_numpy(rows[part])], right[torch.from_numpy(others[part])]
        result[part] = (x * y).sum(1).numpy()
    return result


def best_product(vectors: Floats, rows: Rows, references: Rows) -> Floats:
    """Return the largest cosine of each row with its references, itself left out, (n,); NaN without any.

    Args:
        vectors: (N, d) unit rows.
        rows: (n,).
        references: (n, k) rows; −1 for none.
    """
    best = np.full(len(rows), -np.inf, np.float32)
    for column in references.T:
        use = np.nonzero((column != NONE) & (column != rows))[0]
        best[use] = np.maximum(best[use], products(vectors, vectors, rows[use], column[use]))
    return np.where(np.isfinite(best), best, np.nan).astype(np.float32)
