"""Read a CSV file of pairs by their ids, perhaps with answers: the sheet, labels.csv, or pairs to score."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lossscope.core.pair_rows import IdKind, column_of
from lossscope.core.sides import Sides
from lossscope.errors import InputError
from lossscope.io.csv_texts import CsvTexts, read_csv_texts
from lossscope.io.json_files import shorten

_STRATUM = re.compile(r"([1-9]\d{0,2}) of ([1-9]\d{0,2})")
_SHARE = re.compile(r"(\d+\.?\d*|\.\d+)(e-?\d{1,3})?", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True)
class DesignRow:
    """The stratum that a pair was drawn from at random."""

    stratum: int  # 1: of the highest scores
    of: int  # strata
    share: float  # of all negatives, in the stratum

    @property
    def cells(self) -> tuple[str, str]:
        """The text of both columns of a sheet."""
        return f"{self.stratum} of {self.of}", f"{self.share:.9f}"


class Faults:
    """The lines of a file that cannot be read, and why.

    `add` raises InputError where lines must all be readable.
    """

    def __init__(self, where: str, is_lenient: bool) -> None:
        self._where, self._is_lenient = where, is_lenient
        self._by_rule: dict[str, list[tuple[int, str]]] = {}  # what must be -> lines, and what each has

    def add(self, rule: str, line: int, got: str) -> None:
        """Note a line.

        Args:
            rule: `column image of FILE must ...`.
            line: of the file.
            got: `has 'x'`.
        """
        if not self._is_lenient:
            raise InputError(f"{rule}; line {line} {got}")
        self._by_rule.setdefault(rule, []).append((line, got))

    @property
    def lines(self) -> set[int]:
        """The lines that cannot be read."""
        return {line for faults in self._by_rule.values() for line, _ in faults}

    def notice(self, rows: int) -> str:
        """Return which of `rows` rows are left out, each by its line, and why; empty: none is."""
        if not self._by_rule:
            return ""
        reasons = "; ".join(f"{rule}, and {_listed(faults)}" for rule, faults in self._by_rule.items())
        return f"{len(self.lines)} of {rows} rows of {self._where} cannot be read and are left out: {reasons}"

    def are_many(self, rows: int) -> bool:
        """Return whether half of `rows` rows or more cannot be read: the file may be of other items."""
        return 2 * len(self.lines) >= rows > 0

    def require_few(self, rows: int) -> None:
        """Raise InputError where half of `rows` rows or more cannot be read."""
        if self.are_many(rows):
            (rule, faults), *_ = self._by_rule.items()
            line, got = faults[0]
            others = len(self.lines) - 1
            more = f", and {others} more of {rows} rows cannot be read. Is it a file of other data?" if others else ""
            raise InputError(f"{rule}; line {line} {got}{more}")


def _listed(faults: Sequence[tuple[int, str]]) -> str:
    """Return `line 2 has 'x'`, of several lines with what the first has.

    >>> _listed([(2, "has 'x'"), (5, "is empty")])
    "lines 2 and 5 do not (line 2 has 'x')"
    """
    (line, got), *others = faults
    if not others:
        return f"line {line} {got}"
    numbers = ", ".join(str(number) for number, _ in faults[:-1])
    return f"lines {numbers} and {faults[-1][0]} do not (line {line} {got})"


@dataclass(frozen=True)
class PairFile:
    """The n pairs of a file that can be read."""

    where: str  # the file, as messages name it
    left: Sequence[str]  # (n,) ids of items of the first side
    right: Sequence[str]  # (n,) of the second
    kinds: tuple[IdKind | None, IdKind | None]  # how both columns name items, where their names say it
    lines: Sequence[int]  # (n,) of the file
    answers: Sequence[str] | None  # (n,) in small letters; None without their column
    design: Sequence[DesignRow | None]  # (n,) None: the pair was not drawn for a rate
    faults: Faults  # of the rows that cannot be read
    rows: int  # of the file

    def without(self, lines: set[int]) -> PairFile:
        """Return the file without the pairs of some lines."""
        keep = [row for row, line in enumerate(self.lines) if line not in lines]
        answers = None if self.answers is None else [self.answers[row] for row in keep]
        return replace(
            self, left=[self.left[row] for row in keep], right=[self.right[row] for row in keep],
            lines=[self.lines[row] for row in keep], answers=answers, design=[self.design[row] for row in keep],
        )  # fmt: skip


def pair_columns(sides: Sides) -> tuple[str, str]:
    """Return the columns that name both items: the names of the sides; of one set `item` and `item 2`.

    >>> pair_columns(Sides("query", "document")), pair_columns(Sides("item", None))
    (('query', 'document'), ('item', 'item 2'))
    """
    return sides.first, f"{sides.first} 2" if sides.second is None else sides.second


def answer_column(sides: Sides) -> str:
    """Return the column of answers: `answer`, unless a side has this name."""
    return next(name for name in ("answer", "label", "match") if name not in pair_columns(sides))


def design_columns(sides: Sides) -> tuple[str, str]:
    """Return the columns of a pair's stratum and of the stratum's share; names of sides are avoided."""
    if {"stratum", "share"} & set(pair_columns(sides)):
        return "score stratum", "stratum share"
    return "stratum", "share"


def read_pair_file(path: Path | str, sides: Sides, is_lenient: bool = False) -> PairFile:
    """Read a file of pairs; each id is its text in the file.

    Args:
        path: of a CSV file.
        sides: whose names are those of the columns: `image` of ids or rows, `image_id` of ids, `image_row` of rows.
        is_lenient: whether rows that cannot be read are left out, and stated in `faults`, instead of refused.

    Raises:
        InputError: a file without pairs or without the columns of the sides; a row of another length, or a malformed
            stratum or share, unless `is_lenient`.
    """
    answer = answer_column(sides)
    table = read_csv_texts(str(path), (*pair_columns(sides), answer, *design_columns(sides)), is_lenient)
    where, columns = table.where, table.columns
    first, second = (
        (name, None) if name in columns else column_of(name, columns, where) for name in pair_columns(sides)
    )
    faults = Faults(where, is_lenient)
    for line, length in table.ragged.items():
        faults.add(f"rows of {where} must have {len(columns)} values, as its header", line, f"has {length}")
    answers = [word.strip().lower() for word in columns[answer]] if answer in columns else None
    design = _design(table, design_columns(sides), faults)
    rows = len(table.lines) + len(table.ragged)
    left, right, kinds = columns[first[0]], columns[second[0]], (first[1], second[1])
    file = PairFile(where, left, right, kinds, table.lines, answers, design, faults, rows)
    return file.without(faults.lines)


def _design(table: CsvTexts, names: tuple[str, str], faults: Faults) -> list[DesignRow | None]:
    """Return the stratum of each row, None where both cells are empty."""
    columns, where = table.columns, table.where
    there = [name for name in names if name in columns]
    if not there:
        return [None] * len(table.lines)
    if len(there) == 1:
        raise InputError(f"{where} must have both columns {' and '.join(names)}, or none; it has {there[0]} alone")
    rows: list[DesignRow | None] = []
    for line, *cells in zip(table.lines, columns[names[0]], columns[names[1]], strict=True):
        stratum, share = (cell.strip() for cell in cells)
        found = _STRATUM.fullmatch(stratum)
        rows.append(None)
        if not stratum and not share:
            continue
        if found is None or not 1 <= int(found[1]) <= int(found[2]):
            rule = f"{names[0]} of {where} must be written like '2 of 9', as on the sheet"
            faults.add(rule, line, f"has {shorten(stratum)}")
        elif _SHARE.fullmatch(share) is None or not 0 < float(share) <= 1:
            rule = f"{names[1]} of {where} must be a number above 0 and up to 1, as on the sheet"
            faults.add(rule, line, f"has {shorten(share)}")
        else:
            rows[-1] = DesignRow(int(found[1]), int(found[2]), float(share))
    return rows
