"""Your own judgements: a CSV file with a column of each side, such as image and caption, and perhaps `positive`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lossscope.core.pair_rows import IdKind
from lossscope.core.sides import IMAGE_TEXT, Sides
from lossscope.errors import InputError
from lossscope.io.column_blocks import join_blocks
from lossscope.io.csv_rows import iter_csv_rows
from lossscope.io.json_files import shorten
from lossscope.io.reading import show_path

from .base import Judgements

_POSITIVE = "positive"
_ANSWERS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
_SUFFIXES: Mapping[str, IdKind | None] = {"": None, "_id": "id", "_row": "row"}


def read_pairs_csv(path: str, sides: Sides = IMAGE_TEXT) -> Judgements:
    """Return the pairs of a CSV file, positives unless its column `positive` says 0, false or no.

    Columns are named after the sides: `image`, of ids, of FILE#k or of rows; `image_id`, of ids; or `image_row`, of
    numbers of rows, from 0. Other columns are not read, and a notice names them.
    Raises InputError for a side without a column or with two, and, naming the line, for another answer.
    """
    where = show_path(path)
    columns, lines = _read_columns(path)
    if sides.second is None:
        raise InputError(f"pairs must be of two sides; {sides.first} is one set, whose positives are its labels")
    first, second = (_column_of(name, columns, where) for name in (sides.first, sides.second))
    return Judgements(
        where,
        columns[first[0]],
        columns[second[0]],
        _answers(columns, lines, where),
        "its column `positive` says so" if _POSITIVE in columns else "it has no column `positive`: all are positives",
        lines,
        (first[1], second[1]),
        notices=_unread([name for name in columns if name not in (first[0], second[0], _POSITIVE)], where),
    )


def _read_columns(path: str) -> tuple[dict[str, list[str]], Sequence[int]]:
    """Return column -> values, without blanks around them, and the line of each row."""
    table = join_blocks(iter_csv_rows(path, lambda name: True))
    if table is None:
        raise InputError(f"{show_path(path)} must have a header and at least one pair; it has no pair")
    columns = {name.strip(): [value.strip() for value in values] for name, values in table.columns.items()}
    if len(columns) < len(table.columns):
        raise InputError(f"columns of {show_path(path)} must have different names; two are the same but for blanks")
    return columns, table.lines


def _column_of(side: str, columns: Mapping[str, Sequence[str]], where: str) -> tuple[str, IdKind | None]:
    """Return the column that names the items of a side, and how it names them."""
    names = {f"{name}{end}": kind for name in {side, side.replace(" ", "_")} for end, kind in _SUFFIXES.items()}
    found = [name for name in names if name in columns]
    if len(found) != 1:
        got = " and ".join(found) if found else ", ".join(map(shorten, list(columns)[:8]))
        choices = f"{side}, {side}_id or {side}_row"
        raise InputError(f"{where} must have one column that names the {side}: {choices}; got {got}")
    return found[0], names[found[0]]


def _answers(columns: Mapping[str, Sequence[str]], lines: Sequence[int], where: str) -> list[bool]:
    if _POSITIVE not in columns:
        return [True] * len(lines)
    answers = [_ANSWERS.get(value.lower()) for value in columns[_POSITIVE]]
    if None in answers:
        row = answers.index(None)
        got = shorten(columns[_POSITIVE][row])
        raise InputError(f"{_POSITIVE} in line {lines[row]} of {where} must be one of {', '.join(_ANSWERS)}; got {got}")
    return [bool(answer) for answer in answers]


def _unread(names: Sequence[str], where: str) -> tuple[str, ...]:
    """Return the notice that names columns which are not read."""
    return (f"of {where} the columns {', '.join(map(shorten, names[:8]))} are not read",) if names else ()
