"""Sum the texts of each query, once for all pairs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from lossscope.core.relations import NONE
from lossscope.core.types import Rows

from ..types import Floats
from .material import Material
from .text_space import TextSpace, unit


@dataclass(frozen=True, eq=False)
class QueryTexts:
    """Sums over the texts of each of N queries, its positives, in the spaces of M texts."""

    space: TextSpace
    positives: Rows  # (N, k) rows of the texts of each query; −1 where it has fewer
    owners: Rows  # (M, k) rows of the items that a text belongs to
    needs: ClassVar[tuple[type, ...]] = (TextSpace,)

    @classmethod
    def of(cls, material: Material, space: TextSpace) -> QueryTexts:
        """Collect the texts of each query."""
        return cls(space, material.positives_of_queries, material.positives_of_candidates)

    @cached_property
    def known(self) -> Rows:
        """(N, k) rows of the texts of each query that have known words; −1 for the others."""
        return np.where((self.positives != NONE) & self.space.is_known[self.positives], self.positives, NONE)

    @cached_property
    def sums(self) -> Floats:
        """(N, d) sum of the texts of each query, in the space of siblings."""
        sums = np.zeros((len(self.positives), self.space.siblings.shape[1]), np.float32)
        for column in self.positives.T:
            rows = np.nonzero(column != NONE)[0]
            sums[rows] += self.space.siblings[column[rows]]
        return sums

    @cached_property
    def units(self) -> Floats:
        """(N, d) the sums, of unit length."""
        return unit(self.sums)

    @cached_property
    def of_candidates(self) -> Floats:
        """(M, d) unit sum of the texts of each text's first item; a text without an item stands for itself."""
        owner = self.owners[:, 0]
        return np.where(owner[:, None] == NONE, self.space.siblings, self.units[owner])

    @cached_property
    def has_words(self) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """(N,) whether the texts of each query have known words; (M,) whether those of each candidate's item have."""
        return np.asarray(self.sums.any(1)), np.asarray(self.of_candidates.any(1))

    @cached_property
    def phrase_counts(self) -> Any:
        """(N, P) sparse, the number of each query's texts with a phrase."""
        rows, columns = np.nonzero(self.positives != NONE)
        shape = len(self.positives), self.space.phrases.shape[0]
        belongs = sparse.csr_matrix(
            (np.ones(len(rows), np.float32), (rows, self.positives[rows, columns])), shape=shape
        )
        return (belongs @ self.space.phrases).tocsr()

    @cached_property
    def weighted_phrases(self) -> Any:
        """(M, P) sparse, the weight of each phrase of each text."""
        return (self.space.phrases @ sparse.diags(self.space.phrase_weights)).tocsr()

    @cached_property
    def phrase_weight(self) -> npt.NDArray[np.float64]:
        """(M,) weight of all phrases of each text."""
        return np.asarray(self.weighted_phrases.sum(1), np.float64).ravel()
