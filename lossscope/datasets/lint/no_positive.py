"""Rows without any positive."""

from __future__ import annotations

from .base import Severity, Tables, TextRow
from .hashes import Flags

ID = "no-positive"
SEVERITY: Severity = "error"
ADVICE = "leave these rows out: no loss can learn from them"


def flags(tables: Tables, split: int) -> Flags:
    """Return which rows have none, and no score that says so."""
    return tables.splits[split].lacks_positive


def example(row: TextRow, tables: Tables, split: int) -> str:
    """Return the query."""
    return row.query
