"""A CSV file of pairs, named by ids, and perhaps with answers: the sheet, labels.csv, or pairs to score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lossscope.core.sides import Sides
from lossscope.errors import InputError
from lossscope.io.column_blocks import join_blocks
from lossscope.io.csv_rows import iter_csv_rows
from lossscope.io.csv_tables import restore_text
from lossscope.io.json_files import shorten
from lossscope.io.reading import show_path


@dataclass(frozen=True)
class PairFile:
    """What a file of n pairs says."""

    where: str  # the file, as messages name it
    left: Sequence[str]  # (n,) what names items of the first side
    right: Sequence[str]  # (n,) of the second
    lines: Sequence[int]  # (n,) of the file
    answers: Sequence[str] | None  # (n,) in small letters; None without their column


def pair_columns(sides: Sides) -> tuple[str, str]:
    """Return the columns that name both items: the names of the sides, of one set `item` and `item 2`.

    >>> pair_columns(Sides("query", "document")), pair_columns(Sides("item", None))
    (('query', 'document'), ('item', 'item 2'))
    """
    return sides.first, f"{sides.first} 2" if sides.second is None else sides.second


def answer_column(sides: Sides) -> str:
    """Return the column of answers: `answer`, unless a side is called so."""
    return next(name for name in ("answer", "label", "match") if name not in pair_columns(sides))


def read_pair_file(path: Path | str, sides: Sides) -> PairFile:
    """Read a file of pairs; every value is a text, as it stands there, without blanks around it.

    Raises InputError for a file without pairs, without the columns of the sides, or with an empty id.
    """
    where, names, answer = show_path(Path(path)), pair_columns(sides), answer_column(sides)
    table = join_blocks(iter_csv_rows(str(path), lambda name: True))
    if table is None:
        raise InputError(f"{where} must have a header and at least one pair; it has no pair")
    columns: dict[str, list[str]] = {}
    for name, values in table.columns.items():
        if name.strip() in columns and name.strip() in (*names, answer):
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
    answers = [one.lower() for one in columns[answer]] if answer in columns else None
    return PairFile(where, columns[names[0]], columns[names[1]], table.lines, answers)
