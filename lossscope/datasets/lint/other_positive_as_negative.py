"""Rows with a negative that another row says to answer the same: of the query in other marks, or of the pair reversed.

That a negative is a positive of some other query is no fault. Negatives are drawn from the pool of answers where there
is no other corpus, and then all are; of a corpus, a miner takes what is near, and labelled passages are. How many are
says where negatives come from, and nothing of whether they answer this query. What does is a row whose query differs
in marks at its ends alone (who wrote Emma, who wrote Emma?), or one that has this query as the positive of this
negative, as pairs of equivalent texts may.
"""

from __future__ import annotations

from .base import Severity, Tables, TextRow
from .hashes import Flags

ID = "other-positive-as-negative"
SEVERITY: Severity = "warning"
ADVICE = "leave these negatives out: another row has them as an answer to the same question"


def flags(tables: Tables, split: int) -> Flags:
    """Return which rows have such a negative, and no positive of their own among the negatives."""
    return tables.splits[split].others_as_negative


def example(row: TextRow, tables: Tables, split: int) -> str:
    """Return the first such negative."""
    wrong = tables.splits[split].are_positives(row.query, row.negatives)[1]
    return next((text for text, flag in zip(row.negatives, wrong, strict=True) if flag), row.query)
