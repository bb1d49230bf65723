"""Which items have the same input under different ids?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lossscope.core.facts import Missing
from lossscope.core.sides import plural
from lossscope.core.types import Rows

from .items import Items
from .patient import Patient
from .vectors import copies_of


@dataclass(frozen=True)
class SideCopies:
    """How often two pairs of different items have the same item of one side."""

    name: str  # of the side, plural
    probability: float  # that two random pairs of different items share it
    copied: float  # share of the pairs whose item has a copy
    examples: tuple[str, ...]  # ids of copies
    by: str  # what is equal: inputs or embeddings
    again: Rows  # items that repeat an earlier one

    def expected(self, batch_size: int) -> float:
        """Return how many copies of its positive a query has among the other pairs of a batch."""
        return (batch_size - 1) * self.probability


@dataclass(frozen=True)
class Copies:
    """Copies of both sides."""

    sides: tuple[SideCopies, ...]
    needs: ClassVar[tuple[type, ...]] = (Items,)

    @classmethod
    def of(cls, _: Patient, items: Items) -> Copies:
        """Compare the items of a sample. Raises Missing where neither inputs nor embeddings are known."""
        split = items.split
        relations = split.relations
        if relations.one_set:
            raise Missing("equal items of a labelled set share a label")
        keys, found = split.input_keys, []
        for side, (input_keys, vectors) in enumerate(((keys.i2t, split.images), (keys.t2i, split.captions))):
            if input_keys is None and vectors is None:
                continue
            numbers = input_keys if vectors is None else copies_of(vectors, input_keys)
            assert numbers is not None
            name = plural(relations.sides.first if side == 0 else str(relations.sides.second))
            ids = split.image_ids if side == 0 else split.caption_ids
            found.append(
                side_copies(
                    numbers, relations.positives, side, name, ids, "embedding" if input_keys is None else "input"
                )
            )
        if not found:
            raise Missing("neither its inputs nor its embeddings are known", "embeddings")
        return cls(tuple(found))


def side_copies(numbers: Rows, pairs: Rows, side: int, name: str, ids: list[str], by: str) -> SideCopies:
    """Return how often pairs share an item of one side under another id.

    Args:
        numbers: of the items of the side, equal where they are copies.
        pairs: (n, 2) positives.
        side: 0 or 1.
        name: of the side, plural.
        ids: of its items.
        by: what is equal, inputs or embeddings.
    """
    rows, other, key = pairs[:, side], pairs[:, 1 - side], numbers[pairs[:, side]]
    n = len(pairs)
    # pairs of pairs with equal keys, without those of one item, of one item of the other side, or both
    twins = _equal(key) - _equal(rows) - _equal(key, other) + _equal(rows, other)
    unique_items = np.unique(rows)
    counts = np.unique(numbers[unique_items], return_counts=True)
    repeated = counts[0][counts[1] > 1]
    copied = float(np.isin(key, repeated).mean())
    first = unique_items[np.isin(numbers[unique_items], repeated[:1])][:2] if len(repeated) else ()
    examples = (f"{' = '.join(ids[row] for row in first)}",) if len(first) else ()
    order = np.argsort(numbers, kind="stable")
    again = np.sort(order[1:][numbers[order][1:] == numbers[order][:-1]])
    return SideCopies(name, twins / max(n * (n - 1), 1), copied, examples, by, again)


def _equal(*columns: Rows) -> float:
    """Return the number of ordered pairs of different rows that are equal in every column."""
    rows, axis = (columns[0], None) if len(columns) == 1 else (np.stack(columns, 1), 0)  # much faster without an axis
    counts = np.unique(rows, axis=axis, return_counts=True)[1].astype(np.float64)
    return float((counts * (counts - 1)).sum())
