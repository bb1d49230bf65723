"""Which column of a file has which role, as its first rows decide; and what of the file is not read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sized
from dataclasses import dataclass, field

from lossscope.errors import InputError
from lossscope.io.column_blocks import ColumnBlock

from .column_names import PAIRS, UNREAD, ColumnNames, Role, has_role, is_of
from .scores import ScoreCut, choose_cut


@dataclass
class ColumnChoice:
    """Names of one file's columns by role: decided by the first row that has a value of the role.

    A block reads the same columns whenever it is read: a name counts from the block in which it was decided.
    """

    names: ColumnNames
    cut: float | None = None  # score from which on a pair is a positive; None: by the scale of the scores
    scan: Callable[[str], Iterator[ColumnBlock]] | None = None  # reads one column of the whole file
    _scores: ScoreCut | str | None = None  # how scores are read, or a notice why they are not
    _ignored: dict[str, None] = field(default_factory=dict)  # columns of UNREAD
    _fragile: dict[tuple[str, int], int] = field(default_factory=dict)  # column, block -> rows where it is a text
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
        if role in ("query", "score", "id"):
            return [name] if name in block.columns else []
        return sorted((column for column in block.columns if is_of(column, name)), key=_order)

    def notices(self, file: str) -> tuple[str, ...]:
        """Return what is not read of a file so far, for each role that several names of columns have."""
        scores = self._scores.notice if isinstance(self._scores, ScoreCut) else self._scores
        lines = [scores] if scores else []
        lines += [
            f"{', '.join(map(repr, others))} of {file} {_be(others)} not read: its {role} is "
            f"{self._chosen[role][1]!r}; columns={role}=NAME takes another"
            for role, others in self._unread.items()
        ]
        if self._ignored:
            lines.append(f"{', '.join(map(repr, sorted(self._ignored)))} of {file} {_be(self._ignored)} not read")
        if any(self._fragile.values()):
            count = sum(self._fragile.values())
            lines.append(
                f"{count:,} values of 'pos' or 'neg' in {file} are texts: lossscope reads each as one text, but "
                'FlagEmbedding as a list of its letters. Write lists, "pos": ["..."]'
            )
        return tuple(lines)

    @property
    def is_pair(self) -> bool:
        """Whether rows are two texts that match or not, rather than a query and a positive."""
        return self._chosen.get("query", (0, ""))[1] in PAIRS

    def score_cut(self, block: ColumnBlock) -> ScoreCut | None:
        """Return from which score on a row of the block is a positive; None where scores are not read.

        Raises InputError for scores that lossscope cannot cut, and for those that begin below the first block.
        """
        columns = self.columns("score", block)
        if columns and self._scores is None and self.scan is not None:
            is_stated = self.names.score != ColumnNames().score
            self._scores = choose_cut(self.scan(columns[0]), columns[0], self.cut, self.is_pair or is_stated)
            if isinstance(self._scores, ScoreCut) and block.number:
                raise InputError(f"rows of {block.file} must all have {columns[0]!r}; {block.place(0)} is the first")
        if self.cut is not None and not isinstance(self._scores, ScoreCut):
            raise InputError(
                f"cut={self.cut:g} needs a column of scores; {block.file} has none of "
                f"{', '.join(self.names.score)}. Name it: columns=score=NAME"
            )
        return self._scores if isinstance(self._scores, ScoreCut) else None

    def note_column(self, column: str) -> bool:
        """Return whether a column is read; the known ones that are not become a notice."""
        if column in UNREAD and not self.names.is_any(column):
            self._ignored[column] = None
        return self.names.is_any(column)

    def note_texts(self, name: str, block: ColumnBlock) -> None:
        """Count the rows of a column that FlagEmbedding would take for a list of letters."""
        if name in ("pos", "neg"):
            self._fragile[name, block.number] = sum(isinstance(value, str) for value in block.columns[name])

    def _choose(self, role: Role, block: ColumnBlock) -> None:
        rows: dict[str, int] = {}
        for name in getattr(self.names, role):
            for column, values in block.columns.items():
                if has_role(column, name, role):
                    row = next((row for row, value in enumerate(values) if value is not None), None)
                    if row is not None:
                        rows[name] = min(row, rows.get(name, row))
        if rows:
            self._chosen[role] = block.number, min(rows, key=lambda name: rows[name])  # of equal rows the first name

    def _note_unread(self, role: Role, chosen: str, block: ColumnBlock) -> None:
        known = self._unread.get(role, {})
        for name in getattr(self.names, role):
            for column, values in block.columns.items():
                if name == chosen or column in known or not has_role(column, name, role):
                    continue
                if any(value is not None for value in values):
                    known = self._unread.setdefault(role, {})
                    known[column] = None


def _be(items: Sized) -> str:
    return "is" if len(items) == 1 else "are"


def _order(column: str) -> tuple[int, str]:
    number = column.rpartition("_")[2]
    return (int(number) if number.isdecimal() else -1, column)
