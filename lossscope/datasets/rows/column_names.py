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
    """Names of one file's columns by role: decided by the first row that has a value of the role.

    A block reads the same columns whenever it is read: a name counts from the block in which it was decided.
    """

    names: ColumnNames
    _chosen: dict[Role, tuple[int, str]] = field(default_factory=dict)  # number of the deciding block, and the name
    _unread: dict[Role, dict[str, None]] = field(default_factory=dict)  # columns of other names that have values

    def columns(self, role: Role, block: ColumnBlock) -> list[str]:
        """Return the columns of a block that have a role, in the order of their numbers."""
        if role not in self._chosen:
            self._choose(role, block)
        since, name = self._chosen.get(role, (block.number, None))
        if name is None or block.number < since:
            return []
        self._note_unread(role, name, block)
        if role in ("query", "id"):
            return [name] if name in block.columns else []
        return sorted((column for column in block.columns if _is_of(column, name)), key=_order)

    def notices(self, file: str) -> tuple[str, ...]:
        """Return what is not read of a file so far, for each role that several names of columns have."""
        return tuple(
            f"{', '.join(map(repr, others))} of {file} {'is' if len(others) == 1 else 'are'} not read: its {role} is "
            f"{self._chosen[role][1]!r}; columns={role}=NAME takes another"
            for role, others in self._unread.items()
        )

    def _choose(self, role: Role, block: ColumnBlock) -> None:
        rows: dict[str, int] = {}
        for name in getattr(self.names, role):
            for column, values in block.columns.items():
                if _has_role(column, name, role):
                    row = next((row for row, value in enumerate(values) if value is not None), None)
                    if row is not None:
                        rows[name] = min(row, rows.get(name, row))
        if rows:
            self._chosen[role] = block.number, min(rows, key=lambda name: rows[name])  # of equal rows the first name

    def _note_unread(self, role: Role, chosen: str, block: ColumnBlock) -> None:
        known = self._unread.get(role, {})
        for name in getattr(self.names, role):
            for column, values in block.columns.items():
                if name == chosen or column in known or not _has_role(column, name, role):
                    continue
                if any(value is not None for value in values):
                    known = self._unread.setdefault(role, {})
                    known[column] = None


def _has_role(column: str, name: str, role: Role) -> bool:
    return column == name or (role in ("positive", "negative") and _is_of(column, name))


def _is_of(column: str, name: str) -> bool:
    """Return whether a column is NAME, NAMEs or NAME_1."""
    rest = column.removeprefix(name)
    return column.startswith(name) and (rest in ("", "s") or bool(re.fullmatch(r"_\d{1,6}", rest)))


def _order(column: str) -> tuple[int, str]:
    number = column.rpartition("_")[2]
    return (int(number) if number.isdecimal() else -1, column)
