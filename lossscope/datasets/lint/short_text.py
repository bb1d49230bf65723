"""Rows with negatives of one character, negatives far shorter than the positives, or a positive cut into characters."""

from __future__ import annotations

from .base import Severity, Tables, TextRow
from .hashes import Flags

ID = "short-text"
SEVERITY: Severity = "error"
ADVICE = (
    "look whether a text was read as a list of its characters, or an id as a text: pos and neg must be lists of "
    "texts, then mine again"
)


def flags(tables: Tables, split: int) -> Flags:
    """Return which rows have such a text.

    Of characters, as words have none between them in many languages. Labels and short answers are no fault: where the
    median positive has fewer than 20 characters, or a character is the positive of some row, it is a text.
    """
    return tables.splits[split].has_short


def example(row: TextRow, tables: Tables, split: int) -> str:
    """Return the shortest negative, or the first positives, and the query."""
    table = tables.splits[split]
    if row.negatives and not table.is_cut(row.positives):
        return f"negative {min(row.negatives, key=len)!r} of {row.query!r}"
    return f"positives {', '.join(map(repr, row.positives[:4]))}, ... of {row.query!r}"
