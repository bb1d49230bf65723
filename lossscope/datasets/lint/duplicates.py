"""Rows whose query and positives, in any order, occur in an earlier row; their negatives may be others."""

from __future__ import annotations

import numpy as np

from .base import Severity, Tables, TextRow
from .hashes import Flags, is_in, repeated

ID = "duplicates"
SEVERITY: Severity = "warning"
ADVICE = "keep one row of each, with the negatives of all: in a batch the copy is a false negative"


def flags(tables: Tables, split: int) -> Flags:
    """Return which rows repeat an earlier one of their split."""
    hashes = tables.splits[split].row_hashes
    repeats = is_in(hashes, repeated(hashes)[1]) & ~tables.splits[split].is_negative_pair
    rows = np.flatnonzero(repeats)
    _, first = np.unique(hashes[rows], return_index=True)
    repeats[rows[first]] = False
    return repeats


def example(row: TextRow, tables: Tables, split: int) -> str:
    """Return the query."""
    return row.query
