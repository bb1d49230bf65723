"""Which rows of a split does a file of pairs mean? Those of ids, of the k-th text of an item, or numbers of rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

import numpy as np

from lossscope.errors import InputError
from lossscope.io.json_files import shorten

from .item_ids import show_id
from .relations import Relations
from .sides import plural, with_article
from .types import Rows

Absent = Literal["refuse", "mark", "list"]
"""What is done with values that name nothing."""
IdKind = Literal["id", "place", "row"]
"""How a column names items: by the data set's ids, by ITEM#k (the k-th text of an item), or by numbers of rows."""
ABSENT = -1  # row of what is not of the split
_SUFFIXES: Mapping[str, IdKind | None] = {"": None, "_id": "id", "_row": "row"}  # of columns -> what they hold


class Identified(Protocol):
    """What has two sides with ids, and positives between them: a split, or its embeddings."""

    @property
    def image_ids(self) -> Sequence[str]:
        """N ids of the first side."""

    @property
    def caption_ids(self) -> Sequence[str]:
        """M ids of the second side."""

    @property
    def relations(self) -> Relations:
        """Positives between both sides."""


def resolve_pairs(
    split: Identified,
    first: Sequence[str],
    second: Sequence[str],
    where: str,
    lines: Sequence[int] | None = None,
    kinds: tuple[IdKind | None, IdKind | None] = (None, None),
    absent: Absent = "refuse",
) -> tuple[Rows, Rows]:
    """Return the rows (n,) of the first and of the second side that n pairs name.

    All values of a column are of one kind: ids as the data set gives them; else, for the second side, `ITEM#k`, the
    k-th positive, from 0 and in row order, of the item of the first side whose id is ITEM; else numbers of rows, from
    0. Where an id of that side is a whole number, numbers are ids, unless `kinds` says that they are rows.

    Args:
        split: of two sides or one set, with ids and positives.
        first: (n,) values that name items of the first side.
        second: (n,) values that name items of the second side.
        where: the file, as messages name it.
        lines: (n,) number of each pair's line in it; without, messages count the pairs from 1.
        kinds: of both columns, where the file states them.
        absent: `refuse` values that name nothing; `mark` them with -1, as a file of several splits has them, unless
            they are known without the blanks around them or by another kind of name; `list` marks them all.

    Raises:
        InputError: naming line and value: columns of different lengths, a value that names nothing or two items, a
            column of several kinds or of which no value is known, or a number behind the last row.
    """
    if len(first) != len(second):
        raise InputError(f"pairs of {where} must be of two columns of one length; got {len(first)} and {len(second)}")
    sides = split.relations.sides
    items = _Items(sides.first, split.image_ids)
    texts = _Items(sides.first if sides.second is None else sides.second, split.caption_ids)
    finders: dict[IdKind, _Finder] = {"id": texts.of_id, "row": texts.of_row}
    if not split.relations.one_set:
        finder = _Places(items, split.relations)
        finders = {"id": texts.of_id, "place": finder.of_place, "row": texts.of_row}
    first_column = _Column(items, {"id": items.of_id, "row": items.of_row}, kinds[0], where, lines, absent)
    second_column = _Column(texts, finders, kinds[1], where, lines, absent, owners=items)
    return first_column.rows(first), second_column.rows(second)


def column_of(side: str, columns: Iterable[str], where: str) -> tuple[str, IdKind | None]:
    """Return the column that names the items of a side, and how: `image`, `image_id`, or `image_row` of numbers.

    Args:
        side: its name.
        columns: of the file.
        where: the file, as messages name it.

    Raises:
        InputError: none of the columns, or two of them, name the side.
    """
    there = list(columns)
    names = {f"{name}{end}": kind for name in (side, side.replace(" ", "_")) for end, kind in _SUFFIXES.items()}
    found = [name for name in names if name in there]
    if len(found) != 1:
        got = " and ".join(found) if found else ", ".join(map(shorten, there[:8])) or "none"
        choices = f"{side}, {side}_id or {side}_row"
        raise InputError(f"{where} must have one column that names the {side}: {choices}; got {got}")
    return found[0], names[found[0]]


_Finder = Callable[[str], int]  # what names an item -> its row, or ABSENT


@dataclass(frozen=True)
class _Items:
    """The items of a side."""

    name: str  # image
    ids: Sequence[str]

    def of_id(self, value: str) -> int:
        """Return the row of an id. Raises InputError for an id that two items have."""
        if value in self._doubled:
            raise InputError(
                f"{show_id(value)} must name one {self.name}; {self._doubled[value]} have this id: give numbers of "
                f"rows, in a column called {self.name}_row"
            )
        return self._rows.get(value, ABSENT)

    def of_row(self, value: str) -> int:
        """Return the row that a whole number is."""
        return int(value) if _is_number(value) and int(value) < len(self.ids) else ABSENT

    @cached_property
    def has_numbers(self) -> bool:
        """Whether an id is a whole number, so that numbers are ids."""
        return any(map(_is_number, self.ids))

    @cached_property
    def _rows(self) -> Mapping[str, int]:
        return {value: row for row, value in enumerate(self.ids)}

    @cached_property
    def _doubled(self) -> Mapping[str, int]:
        """Id -> number of items that have it, of those ids that several have."""
        if len(self._rows) == len(self.ids):
            return {}
        return {value: number for value, number in Counter(self.ids).items() if number > 1}


@dataclass(frozen=True)
class _Places:
    """The texts of each item of the first side."""

    items: _Items
    relations: Relations

    def of_place(self, value: str) -> int:
        """Return the row of the text that `ITEM#k` names."""
        owner, mark, k = value.rpartition("#")
        row = self.items.of_id(owner) if mark and _is_number(k) else ABSENT
        if row == ABSENT:
            return ABSENT
        starts, texts = self._lists
        near = texts[starts[row] : starts[row + 1]]
        return int(near[int(k)]) if int(k) < len(near) else ABSENT

    @cached_property
    def _lists(self) -> tuple[Rows, Rows]:
        """(N + 1,) where the positives of each item begin in a list of rows, and the list, ascending for each item."""
        owners, texts = self.relations.positives.T
        order = np.lexsort((texts, owners))
        return np.searchsorted(owners[order], np.arange(self.relations.first + 1)), texts[order]


@dataclass(frozen=True)
class _Column:
    """One column of a file of pairs."""

    items: _Items  # that its values name
    finders: Mapping[IdKind, _Finder]  # in the order in which they are tried
    stated: IdKind | None
    where: str
    lines: Sequence[int] | None
    absent: Absent  # what is done with values that name nothing
    owners: _Items | None = None  # items of the first side, where this is the second

    def rows(self, values: Sequence[str]) -> Rows:
        """Return (n,) the rows that values name, ABSENT for those that are marked. Raises InputError."""
        if not values:
            return np.zeros(0, np.int64)
        found: Mapping[IdKind, list[int]] = {kind: self._find(kind, values) for kind in self._kinds}
        kind = next((kind for kind, rows in found.items() if any(row != ABSENT for row in rows)), None)
        if kind is None:
            raise self._unknown(values, 0, len(values) - 1)
        missing = [] if self.absent == "list" else [i for i, row in enumerate(found[kind]) if row == ABSENT]
        if self.absent == "mark" and kind != "row":
            mixed = [index for index in missing if any(rows[index] != ABSENT for rows in found.values())]
            if mixed:
                raise self._mixed(values, mixed[0], kind)
            missing = [index for index in missing if self._is_spaced(values[index])]
        if missing:
            raise self._unknown(values, missing[0], len(missing) - 1)
        return np.array(found[kind], dtype=np.int64)

    @property
    def _kinds(self) -> Sequence[IdKind]:
        """The kinds that values may be of, those first that are preferred."""
        if self.stated is not None:
            return [self.stated] if self.stated in self.finders else []
        return [kind for kind in self.finders if kind != "row" or not self.items.has_numbers]

    def _find(self, kind: IdKind, values: Sequence[str]) -> list[int]:
        find, rows = self.finders[kind], []
        for index, value in enumerate(values):
            try:
                rows.append(find(value))
            except InputError as problem:
                raise InputError(f"{self._place(index)}: {problem}") from None
        return rows

    def _place(self, index: int) -> str:
        return (
            f"pair {index + 1} of {self.where}" if self.lines is None else f"line {self.lines[index]} of {self.where}"
        )

    def _is_spaced(self, value: str) -> bool:
        """Return whether a value names an item but for blanks around it."""
        plain = value.strip()
        return plain != value and any(self._find(kind, [plain]) != [ABSENT] for kind in self._kinds)

    def _unknown(self, values: Sequence[str], index: int, others: int) -> InputError:
        more = f", and {others} more that name none" if others else ""
        if self._is_spaced(values[index]):
            return InputError(
                f"{self._place(index)} must name {with_article(self.items.name)} of this split; got "
                f"{show_id(values[index])}{more}: take away the blanks around it, which belong to an id"
            )
        return InputError(
            f"{self._place(index)} must name {with_article(self.items.name)} of this split: {self._accepted}; got "
            f"{show_id(values[index])}{more}. Is it a file of another split, or of other data?"
        )

    def _mixed(self, values: Sequence[str], index: int, kind: IdKind) -> InputError:
        words: Mapping[IdKind, str] = {"id": "ids", "place": f"{self._owner}#k", "row": "numbers of rows"}
        return InputError(
            f"{plural(self.items.name)} of {self.where} must all have one kind of name; others are "
            f"{words[kind]}, and {self._place(index)} has {show_id(values[index])}"
        )

    @property
    def _owner(self) -> str:
        return "ITEM" if self.owners is None else self.owners.name.upper().replace(" ", "_")

    @property
    def _accepted(self) -> str:
        """Say what a value may be."""
        ways, last = [], len(self.items.ids) - 1
        if "id" in self._kinds and last >= 0:
            ways.append(f"an id as the data set gives it, such as {show_id(self.items.ids[0])}")
        if "place" in self._kinds and self.owners is not None and self.owners.ids:
            example, name = show_id(f"{self.owners.ids[0]}#0"), self.owners.name
            ways.append(f"{self._owner}#k for the k-th of {with_article(name)}, from 0, such as {example}")
        if "row" in self._kinds:
            ways.append(f"the number of a row, 0..{last}")
        elif self.stated is None:
            ways.append(f"in a column called {self.items.name}_row the number of a row, 0..{last}")
        return "; or ".join(ways)


def _is_number(value: str) -> bool:
    """Return whether a value is a whole number as Python writes it, of ordinary size."""
    return value.isascii() and value.isdecimal() and len(value) < 16 and str(int(value)) == value
