"""Rows with a text of more words than the limit, words being what white space separates."""

from __future__ import annotations

from .base import Severity, Tables, TextRow
from .hashes import Flags

ID = "long-text"
SEVERITY: Severity = "warning"
ADVICE = "encoders cut texts at their limit of tokens: cut passages yourself, or raise --max-words"


def flags(tables: Tables, split: int) -> Flags:
    """Return which rows have such a text."""
    return tables.splits[split].has_long


def example(row: TextRow, tables: Tables, split: int) -> str:
    """Return the number of words of the first such text, and its beginning."""
    for text in (row.query, *row.positives, *row.negatives):
        words = len(text.split())
        if words > tables.max_words:
            return f"{words} words: {text}"
    return row.query
