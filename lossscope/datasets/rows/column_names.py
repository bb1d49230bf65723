"""Which column of a file is the query, which are positives, negatives and ids?"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from typing import Literal

from lossscope.errors import InputError
from lossscope.io.column_blocks import ColumnBlock

Role = Literal["query", "positive", "negative", "id"]
_MAX_LETTERS = 1000  # of the text that names columns


@dataclass(frozen=True)
class ColumnNames:
    """Names that each role may have; of several that a file has, the first one counts.

    Positives and negatives have one text or list of texts in a column NAME or NAMEs, or several columns NAME_1, NAME_2.
    """

    query: tuple[str, ...] = ("query", "anchor", "question")
    positive: tuple[str, ...] = ("positive", "pos", "answer")
    negative: tuple[str, ...] = ("negative", "neg")
    id: tuple[str, ...] = ("id", "query_id")  # of the query

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
        return (
            column in self.query or column in self.id or any(_is_of(column, n) for n in self.positive + self.negative)
        )


@dataclass
class ColumnChoice:
    """Names of one file's columns by role: decided by the first row that has a value of the role."""

    names: ColumnNames
    _chosen: dict[Role, str] = field(default_factory=dict)

    def columns(self, role: Role, block: ColumnBlock) -> list[str]:
        """Return the columns of a block that have a role, in the order of their numbers."""
        if role not in self._chosen:
            self._choose(role, block)
        name = self._chosen.get(role)
        if name is None:
            return []
        if role in ("query", "id"):
            return [name] if name in block.columns else []
        return sorted((column for column in block.columns if _is_of(column, name)), key=_order)

    def _choose(self, role: Role, block: ColumnBlock) -> None:
        many = role in ("positive", "negative")
        rows: dict[str, int] = {}
        for name in getattr(self.names, role):
            for column, values in block.columns.items():
                if column == name or (many and _is_of(column, name)):
                    row = next((row for row, value in enumerate(values) if value is not None), None)
                    if row is not None:
                        rows[name] = min(row, rows.get(name, row))
        if rows:
            self._chosen[role] = min(rows, key=lambda name: rows[name])  # of equal rows the first name


def _is_of(column: str, name: str) -> bool:
    """Return whether a column is NAME, NAMEs or NAME_1."""
    rest = column.removeprefix(name)
    return column.startswith(name) and (rest in ("", "s") or bool(re.fullmatch(r"_\d{1,6}", rest)))


def _order(column: str) -> tuple[int, str]:
    number = column.rpartition("_")[2]
    return (int(number) if number.isdecimal() else -1, column)
