"""Rows with a negative that is a near copy of a positive of the row: a mark, a title or a few words more or less."""

from __future__ import annotations

from lossscope.core.near_text import near_copies_of
from lossscope.core.normal_form import normal_form

from .base import Severity, Tables, TextRow
from .hashes import Flags

ID = "near-copies"
SEVERITY: Severity = "warning"
ADVICE = (
    "leave these negatives out: they answer the query as the positive does; mine again from a corpus without near "
    "copies"
)


def flags(tables: Tables, split: int) -> Flags:
    """Return which rows have such a negative."""
    return tables.splits[split].has_near_copy


def example(row: TextRow, tables: Tables, split: int) -> str:
    """Return the first such negative."""
    forms = [normal_form(text) for text in row.negatives]
    near = set(near_copies_of([normal_form(text) for text in row.positives], forms))
    return next((text for text, form in zip(row.negatives, forms, strict=True) if form in near), row.query)
