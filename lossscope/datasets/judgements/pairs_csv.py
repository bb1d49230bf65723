"""Your own judgements: a CSV file with a column of each side, such as image and caption, and perhaps `positive`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lossscope.core.pair_rows import column_of
from lossscope.core.sides import IMAGE_TEXT, Sides
from lossscope.errors import InputError
from lossscope.io.csv_texts import read_csv_texts
from lossscope.io.json_files import shorten

from .base import Judgements

_POSITIVE = "positive"
_ANSWERS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


def read_pairs_csv(path: str, sides: Sides = IMAGE_TEXT) -> Judgements:
    """Return the pairs of a CSV file, positives unless its column `positive` says 0, false or no.

    Columns are named after the sides: `image`, of ids, of FILE#k or of rows; `image_id`, of ids; or `image_row`, of
    numbers of rows, from 0. Other columns are not read, and a notice names them.
    Raises InputError for a side without a column or with two, and, naming the line, for another answer.
    """
    table = read_csv_texts(path)
    where, columns, lines = table.where, table.columns, table.lines
    if sides.second is None:
        raise InputError(f"pairs must be of two sides; {sides.first} is one set, whose positives are its labels")
    first, second = (column_of(name, columns, where) for name in (sides.first, sides.second))
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


def _answers(columns: Mapping[str, Sequence[str]], lines: Sequence[int], where: str) -> list[bool]:
    if _POSITIVE not in columns:
        return [True] * len(lines)
    answers = [_ANSWERS.get(value.strip().lower()) for value in columns[_POSITIVE]]
    if None in answers:
        row = answers.index(None)
        got = shorten(columns[_POSITIVE][row])
        raise InputError(f"{_POSITIVE} in line {lines[row]} of {where} must be one of {', '.join(_ANSWERS)}; got {got}")
    return [bool(answer) for answer in answers]


def _unread(names: Sequence[str], where: str) -> tuple[str, ...]:
    """Return the notice that names columns which are not read."""
    return (f"of {where} the columns {', '.join(map(shorten, names[:8]))} are not read",) if names else ()
