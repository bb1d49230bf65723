"""Rows whose query, or one of whose positives or negatives, is empty or white space."""

from __future__ import annotations

from lossscope.core.normal_form import normal_form

from .base import Severity, Tables, TextRow
from .hashes import Flags

ID = "empty-text"
SEVERITY: Severity = "error"
ADVICE = "leave these texts out: all empty texts have one vector"


def flags(tables: Tables, split: int) -> Flags:
    """Return which rows have such a text."""
    return tables.splits[split].has_empty


def example(row: TextRow, tables: Tables, split: int) -> str:
    """Return which texts of the row are empty, and its query."""
    texts = {"query": [row.query], "positive": row.positives, "negative": row.negatives}
    empty = [
        f"{what} {number}" if len(role_texts) > 1 else what
        for what, role_texts in texts.items()
        for number, text in enumerate(role_texts, start=1)
        if not normal_form(text)
    ]
    return f"{', '.join(empty)} of {row.query!r}" if normal_form(row.query) else ", ".join(empty)
