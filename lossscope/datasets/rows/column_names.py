"""Which column of a file is the query, which are positives, negatives, scores and ids? The names that each may have."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import Literal

from lossscope.errors import InputError

Role = Literal["query", "positive", "negative", "score", "id"]
PAIRS = {
    "sentence1": "sentence2",
    "sentence_A": "sentence_B",
    "text1": "text2",
    "question1": "question2",
    "premise": "hypothesis",
}
"""Columns of two texts that match or not, as their score says; such rows may have an id, which is of the pair."""
UNREAD = ("prompt", "pos_scores", "neg_scores", "type")  # of FlagEmbedding, which a notice names
_MAX_LETTERS = 1000  # of the text that names columns


@dataclass(frozen=True)
class ColumnNames:
    """Names that each role may have; of several that a file has, the first one counts.

    Positives and negatives have one text or list of texts in a column NAME or NAMEs, or several columns NAME_1, NAME_2.
    """

    query: tuple[str, ...] = ("query", "anchor", "question", *PAIRS)
    positive: tuple[str, ...] = (
        "positive",
        "pos",
        "positive_passages",
        "positive_ctxs",
        "positive_document_ids",
        "answer",
        *PAIRS.values(),
    )
    negative: tuple[str, ...] = (
        "negative",
        "neg",
        "negative_passages",
        "hard_negative_ctxs",
        "negative_ctxs",
        "negative_document_ids",
    )
    score: tuple[str, ...] = (
        "label",
        "labels",
        "score",
        "scores",
        "similarity_score",
        "relatedness_score",
        "is_duplicate",
    )
    id: tuple[str, ...] = ("id", "query_id", "qid")  # of the query

    @classmethod
    def parse(cls, text: str) -> ColumnNames:
        """Return the names of `query=title,positive=body`; roles that it does not name keep their usual ones.

        Raises InputError for anything else.

        >>> ColumnNames.parse("query=title").query
        ('title',)
        """
        roles, names = [item.name for item in fields(cls)], {}
        if len(text) > _MAX_LETTERS:
            raise InputError(f"columns must be of at most {_MAX_LETTERS} letters; got {len(text)}")
        for piece in filter(None, text.split(",")):
            role, equals, name = (part.strip() for part in piece.partition("="))
            if not equals or not name or role not in roles or role in names:
                want = "ROLE=NAME,... with a role of " + ", ".join(roles) + " at most once"
                raise InputError(f"columns must be {want}; got {text!r}")
            names[role] = (name,)
        return cls(**names)

    def is_any(self, column: str) -> bool:
        """Return whether a column of this name has a role."""
        return column in (*self.query, *self.score, *self.id) or any(
            is_of(column, name) for name in self.positive + self.negative
        )


def has_role(column: str, name: str, role: Role) -> bool:
    """Return whether a column has the role that a name stands for."""
    return column == name or (role in ("positive", "negative") and is_of(column, name))


def is_of(column: str, name: str) -> bool:
    """Return whether a column is NAME, NAMEs or NAME_1."""
    rest = column.removeprefix(name)
    return column.startswith(name) and (rest in ("", "s") or bool(re.fullmatch(r"_\d{1,6}", rest)))
