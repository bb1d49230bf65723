"""Rows whose query is a query of an earlier split, or one of whose positives is a positive there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .base import Severity, Tables, TextRow
from .hashes import EMPTY, Flags, Hashes, is_in, text_hashes

ID = "split-leak"
SEVERITY: Severity = "error"
ADVICE = "take these rows out of one of the splits: what is measured on them was trained on"


def flags(tables: Tables, split: int) -> Flags:
    """Return which rows of a split stand in one before it; of the first split none do."""
    table, earlier = tables.splits[split], tables.splits[:split]
    leaks = np.zeros(len(table), dtype=bool)
    if earlier and len(table):
        leaks |= _is_known(table.queries, [before.sorted_queries for before in earlier])
        owners = np.repeat(np.arange(len(table)), table.positive_counts)
        leaks[owners[_is_known(table.positives, [before.documents for before in earlier])]] = True
    return leaks


def example(row: TextRow, tables: Tables, split: int) -> str:
    """Return the query, or else the first positive, that stands in an earlier split."""
    earlier = tables.splits[:split]
    if _is_known(text_hashes([row.query]), [table.sorted_queries for table in earlier]).any():
        return row.query
    known = _is_known(text_hashes(row.positives), [table.documents for table in earlier])
    return next((text for text, flag in zip(row.positives, known, strict=True) if flag), row.query)


def _is_known(hashes: Hashes, tables: Sequence[Hashes]) -> Flags:
    """Return which hashes of texts, empty ones aside, are in any of some sorted tables."""
    known = np.zeros(len(hashes), dtype=bool)
    for table in tables:
        known |= is_in(hashes, table)
    known &= hashes != EMPTY
    return known
