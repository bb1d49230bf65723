"""Read a CSV file of pairs by their ids, perhaps with answers: the sheet, labels.csv, or pairs to score."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lossscope.core.sides import Sides
from lossscope.errors import InputError
from lossscope.io.column_blocks import join_blocks
from lossscope.io.csv_rows import iter_csv_rows
from lossscope.io.csv_tables import restore_text
from lossscope.io.json_files import shorten
from lossscope.io.reading import show_path

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


@dataclass(frozen=True)
class PairFile:
    """The n pairs of a file."""

    where: str  # the file, as messages name it
    left: Sequence[str]  # (n,) ids of items of the first side
    right: Sequence[str]  # (n,) of the second
    lines: Sequence[int]  # (n,) of the file
    answers: Sequence[str] | None  # (n,) in small letters; None without their column
    design: Sequence[DesignRow | None]  # (n,) None: the pair was not drawn for a rate


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


def read_pair_file(path: Path | str, sides: Sides) -> PairFile:
    """Read a file of pairs; each value is its text in the file, without blanks around it.

    Raises InputError for a file without pairs, without the columns of the sides, with an empty id, or with a malformed
    stratum or share.
    """
    where, names, answer = show_path(Path(path)), pair_columns(sides), answer_column(sides)
    table = join_blocks(iter_csv_rows(str(path), lambda name: True))
    if table is None:
        raise InputError(f"{where} must have a header and at least one pair; it has no pair")
    columns: dict[str, list[str]] = {}
    for name, values in table.columns.items():
        if name.strip() in columns and name.strip() in (*names, answer, *design_columns(sides)):
            raise InputError(
                f"columns of {where} must have different names; got {name.strip()!r} twice, but for blanks"
            )
        columns[name.strip()] = [restore_text(value.strip()) for value in values]
    if any(name not in columns for name in names):
        got = ", ".join(map(shorten, list(columns)[:8]))
        raise InputError(f"{where} must have the columns {' and '.join(names)}; got {got}")
    for name in names:
        if "" in columns[name]:
            line = table.lines[columns[name].index("")]
            raise InputError(f"column {name} of {where} must name an item in every row; line {line} is empty")
    answers = [word.lower() for word in columns[answer]] if answer in columns else None
    design = _design(columns, design_columns(sides), table.lines, where)
    return PairFile(where, columns[names[0]], columns[names[1]], table.lines, answers, design)


def _design(
    columns: Mapping[str, list[str]], names: tuple[str, str], lines: Sequence[int], where: str
) -> list[DesignRow | None]:
    """Return the stratum of each row, None where both cells are empty."""
    there = [name for name in names if name in columns]
    if not there:
        return [None] * len(lines)
    if len(there) == 1:
        raise InputError(f"{where} must have both columns {' and '.join(names)}, or none; it has {there[0]} alone")
    rows: list[DesignRow | None] = []
    for line, stratum, share in zip(lines, columns[names[0]], columns[names[1]], strict=True):
        if not stratum and not share:
            rows.append(None)
            continue
        found = _STRATUM.fullmatch(stratum)
        if found is None or not 1 <= int(found[1]) <= int(found[2]):
            raise InputError(
                f"{names[0]} of {where} must be written like '2 of 9', as on the sheet; line {line} has "
                f"{shorten(stratum)}"
            )
        if _SHARE.fullmatch(share) is None or not 0 < float(share) <= 1:
            raise InputError(
                f"{names[1]} of {where} must be a number above 0 and up to 1, as on the sheet; line {line} has "
                f"{shorten(share)}"
            )
        rows.append(DesignRow(int(found[1]), int(found[2]), float(share)))
    return rows
