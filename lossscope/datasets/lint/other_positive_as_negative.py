"""Rows with a negative that is a positive of another query of their split, and none of their own."""

from __future__ import annotations

from .base import Severity, Tables, TextRow
from .hashes import Flags

ID = "other-positive-as-negative"
SEVERITY: Severity = "warning"
ADVICE = "look whether they answer this query too: mined negatives often do"


def flags(tables: Tables, split: int) -> Flags:
    """Return which rows have such a negative."""
    return tables.splits[split].others_as_negative


def example(row: TextRow, tables: Tables, split: int) -> str:
    """Return the first such negative."""
    wrong = tables.splits[split].are_positives(row.query, row.negatives)[1]
    return next((text for text, flag in zip(row.negatives, wrong, strict=True) if flag), row.query)
