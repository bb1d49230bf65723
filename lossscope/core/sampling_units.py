"""Which items are drawn together? The units of an interval: an image with its captions, a query with its documents."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .relations import Relations
from .sides import plural
from .types import Rows

LEAST = 10  # units below which a deviation over them says too little
_MOST = 0.2  # share of the items of a side that one unit may hold


@dataclass(frozen=True)
class SamplingUnits:
    """The units of a split: items that are positives of each other, directly or through others, are one unit.

    Another split like this one would have other units, each with its items. Items of one unit are not independent of
    each other; those of different units are. Of one labelled set a unit is a class.
    """

    first: Rows  # (N,) unit of each item of the first side
    second: Rows  # (M,) of the second; of one set the same
    number: int  # of units
    name: str  # of one: `image`, `query`, `class`

    @classmethod
    def of(cls, relations: Relations) -> SamplingUnits:
        """Return the units of a split's relations."""
        if relations.labels is not None:
            _, classes = np.unique(relations.labels, return_inverse=True)
            classes = classes.astype(np.int64).reshape(-1)
            return cls(classes, classes, int(classes.max(initial=-1)) + 1, "class")
        n, m = relations.first, relations.second
        if relations.has_owners:  # nothing links two images
            return cls(np.arange(n), relations.caption_image, n, relations.sides.first)
        from scipy import sparse
        from scipy.sparse import csgraph

        rows, columns = relations.positives[:, 0], relations.positives[:, 1] + n
        graph = sparse.coo_array((np.ones(len(rows), np.int8), (rows, columns)), shape=(n + m, n + m))
        number, labels = csgraph.connected_components(graph, directed=False)
        labels = labels.astype(np.int64)
        name = "class" if relations.sides.has_proxies else relations.sides.first
        return cls(labels[:n], labels[n:], int(number), name)

    @cached_property
    def joined(self) -> Rows:
        """(N + M,) units of both sides put together, as batches of views have them."""
        return np.concatenate([self.first, self.second])

    @property
    def refusal(self) -> str | None:
        """Say why no interval can be computed over these units; None where one can."""
        largest, names = max(self._largest(self.first), self._largest(self.second)), plural(self.name)
        if largest > _MOST and (self.number == 1 or largest * self.number > 2):  # larger than others, not one of few
            linked = "" if self.name == "class" else f": {names} that share positives are one"
            return f"an interval takes many independent {names}; one has {100 * largest:.0f} % of the items{linked}"
        return f"an interval takes {LEAST} {names} or more; there are {self.number}" if self.number < LEAST else None

    def _largest(self, units: Rows) -> float:
        """Return the share of the items that the largest unit has."""
        return float(np.bincount(units).max() / len(units)) if len(units) else 0.0
