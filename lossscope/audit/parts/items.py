"""The items of an audit: their ids and known matches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest

import numpy as np

from lossscope.core.relations import NONE, Relations
from lossscope.core.types import Progress, Rows
from lossscope.errors import InputError

MOST_REFERENCES = 16  # a candidate is compared with the first 16 positives of an item


@dataclass(eq=False)
class AuditedItems:
    """The N items of the first side and the M of the second."""

    relations: Relations
    image_ids: list[str]  # N ids of the first side
    caption_ids: list[str]  # M ids of the second
    progress: Progress | None = None

    @cached_property
    def positives_of_queries(self) -> Rows:
        """(N, k) positives of each item of the first side, at most 16; −1 where it has fewer."""
        return _lists(self.relations)

    @cached_property
    def positives_of_candidates(self) -> Rows:
        """(M, k) items of the first side whose positive is this item of the second, at most 16; −1: fewer."""
        return _lists(self.relations.t())


def other_items(name: str, ids: Sequence[str], audited: Sequence[str], side: str) -> InputError:
    """Return the error that a source has other items than the audit, with the first id that differs.

    Args:
        name: of the source.
        ids: of one of its sides.
        audited: ids of this side of the audit.
        side: first or second.
    """
    row, *two = next((row, a, b) for row, (a, b) in enumerate(zip_longest(ids, audited)) if a != b)
    first, second = ("missing" if id is None else f"{id!r:.60}" for id in two)
    numbers = f"its {side} side has {len(ids):,} items, the audit's {len(audited):,}; "
    order = ", in another order" if sorted(ids) == sorted(audited) else ""
    return InputError(
        f"{name} must be of the items of the audit; {numbers if len(ids) != len(audited) else ''}item {row} of its "
        f"{side} side is {first}, and the audit's {second}{order}. Take its own split (--split), or write the ids of "
        "the data into the dump"
    )


def _lists(relations: Relations) -> Rows:
    """(N, k) positives of each item of the first side; −1 where it has fewer."""
    if relations.labels is not None:
        return _same_label(relations.labels)
    pairs = relations.positives[np.argsort(relations.positives[:, 0], kind="stable")]
    counts = np.bincount(pairs[:, 0], minlength=relations.first)
    nth = np.arange(len(pairs)) - np.repeat(np.cumsum(counts) - counts, counts)
    width = int(min(counts.max(initial=0), MOST_REFERENCES))
    lists = np.full((relations.first, max(width, 1)), NONE, np.int64)
    kept = nth < width
    lists[pairs[kept, 0], nth[kept]] = pairs[kept, 1]
    return lists


def _same_label(labels: Rows) -> Rows:
    """(N, k) other items with the label of each item."""
    order = np.argsort(labels, kind="stable")
    ordered = labels[order]
    start, stop = np.searchsorted(ordered, labels, "left"), np.searchsorted(ordered, labels, "right")
    width = int(min((stop - start).max(initial=1) - 1, MOST_REFERENCES))
    lists = np.full((len(labels), max(width, 1)), NONE, np.int64)
    positions = np.empty(len(labels), np.int64)
    positions[order] = np.arange(len(labels))
    for k in range(width):  # the k-th item behind it, cyclically within the class
        size = stop - start
        rows = start + (positions - start + 1 + k) % size
        lists[:, k] = np.where(k + 1 < size, order[np.minimum(rows, len(labels) - 1)], NONE)
    return lists
