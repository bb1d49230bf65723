"""Rows with a positive that is a near copy of a positive of an earlier row, whatever their queries."""

from __future__ import annotations

from .base import Severity, Tables, TextRow
from .hashes import Flags, is_in, text_hashes

ID = "near-duplicates"
SEVERITY: Severity = "warning"
ADVICE = (
    "keep one text of each, with the queries of all: where both are in a batch, the copy is a false negative of the "
    "other's query"
)


def flags(tables: Tables, split: int) -> Flags:
    """Return which rows have such a positive."""
    return tables.splits[split].near_duplicates.rows


def example(row: TextRow, tables: Tables, split: int) -> str:
    """Return the first positive that has a near copy in another row."""
    near = is_in(text_hashes(row.positives), tables.splits[split].near_duplicates.texts)
    return next((text for text, flag in zip(row.positives, near, strict=True) if flag), row.query)
