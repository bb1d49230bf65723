"""Rows with a negative that is a positive of the same query, in this row or in another one of its split."""

from __future__ import annotations

from .base import Severity, Tables, TextRow
from .hashes import Flags

ID = "positive-as-negative"
SEVERITY: Severity = "error"
ADVICE = "leave these negatives out: the loss pushes a query away from its own positive"


def flags(tables: Tables, split: int) -> Flags:
    """Return which rows have such a negative."""
    return tables.splits[split].own_as_negative


def example(row: TextRow, tables: Tables, split: int) -> str:
    """Return the first such negative."""
    wrong = tables.splits[split].are_positives(row.query, row.negatives)[0]
    return next((text for text, flag in zip(row.negatives, wrong, strict=True) if flag), row.query)
