"""TREC run files: the documents that a system ranked highest for each query, with their scores."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from lossscope.errors import InputError

from .json_files import shorten
from .line_blocks import iter_lines
from .reading import show_path


@dataclass(frozen=True, slots=True)
class Retrieved:
    """One line of a run."""

    line: int  # counted from 1
    query: str  # id
    document: str  # id
    score: float


def iter_run(location: str) -> Iterator[Retrieved]:
    """Yield the lines `query Q0 document rank score tag` of a run file, in their order.

    Raises InputError, naming file and line, for a line of other columns, and for a score that is no number.
    """
    name = show_path(location)
    for number, line in iter_lines(location):
        yield _retrieved(line, number, name)


def _retrieved(line: str, number: int, name: str) -> Retrieved:
    columns = line.split()
    if len(columns) != 6:
        raise InputError(
            f"line {number} of {name} must be query Q0 document rank score tag, with blanks between; got "
            f"{shorten(line)}"
        )
    try:
        score = float(columns[4])
    except ValueError:
        score = math.nan
    if math.isnan(score):
        raise InputError(f"score in line {number} of {name} must be a number; got {shorten(columns[4])}")
    return Retrieved(number, columns[0], columns[2], score)
