"""Files of TREC, as BEIR has them too: relevant documents of a query (qrels), and what a system ranked highest."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lossscope.errors import InputError

from .exact_texts import IN_RUNS
from .json_files import shorten
from .json_runs import is_json_run, iter_json_run
from .line_blocks import iter_lines
from .locations import suffix_of
from .reading import show_path

_MOST = 4096  # letters of a line that is looked at
_BLANKS = re.compile("[ \t\r\f\v]+")  # between columns, as C programs split them; other blanks are letters of ids


@dataclass(frozen=True, slots=True)
class ScoredDocument:
    """One line."""

    line: int  # counted from 1
    query: str  # id
    document: str  # id
    score: float  # of judgements a whole number, above 0: relevant


def iter_judgements(location: str) -> Iterator[ScoredDocument]:
    """Yield the lines of `query-id <tab> corpus-id <tab> score`, below a header or not, or of TREC's four columns; or
    of JSON, query -> document -> score.

    Raises InputError, naming file and line, for a line of other columns, and for a score that is no whole number.
    """
    name = show_path(location)
    if suffix_of(location) == ".json":
        yield from _iter_json(location, is_graded=True)
        return
    for number, line in iter_lines(location):
        columns = line.rstrip("\r").split("\t") if "\t" in line else _split(line)
        score = columns[-1].strip()
        if number == 1 and score.lower() == "score":  # a header
            continue
        if len(columns) not in (3, 4):
            raise InputError(
                f"line {number} of {name} must be query-id, corpus-id, score, with tabs between; got {shorten(line)}"
            )
        if not score.removeprefix("-").isdecimal() or len(score) > 9:
            raise InputError(f"score in line {number} of {name} must be a whole number; got {shorten(score)}")
        yield ScoredDocument(number, IN_RUNS.read(columns[0]), IN_RUNS.read(columns[-2]), int(score))


def is_run(path: Path) -> bool:
    """Return whether a file is a run in JSON, or begins with six columns, with numbers as rank and score."""
    if is_json_run(path):
        return True
    try:
        with open(path, encoding="utf-8") as file:
            columns = _split(file.readline(_MOST).rstrip("\n"))
        return len(columns) == 6 and columns[3].removeprefix("-").isdecimal() and float(columns[4]) == float(columns[4])
    except (OSError, ValueError):  # a folder, bytes that are no text, a word where the score is
        return False


def iter_run(location: str) -> Iterator[ScoredDocument]:
    """Yield the lines `query Q0 document rank score tag` of a run file, or of JSON, in their order.

    Raises InputError, naming file and line, for a line of other columns, and for a score that is no number.
    """
    name = show_path(location)
    if suffix_of(location) == ".json":
        yield from _iter_json(location)
        return
    for number, line in iter_lines(location):
        columns = _split(line)
        if len(columns) != 6:
            what = "query Q0 document rank score tag, with blanks between"
            raise InputError(f"line {number} of {name} must be {what}; got {shorten(line)}")
        try:
            score = float(columns[4])
        except ValueError:
            score = math.nan
        if math.isnan(score):
            raise InputError(f"score in line {number} of {name} must be a number; got {shorten(columns[4])}")
        yield ScoredDocument(number, IN_RUNS.read(columns[0]), IN_RUNS.read(columns[2]), score)


def _split(line: str) -> list[str]:
    """Return the columns of a line."""
    return _BLANKS.split(line.strip(" \t\r\f\v"))


def _iter_json(location: str, is_graded: bool = False) -> Iterator[ScoredDocument]:
    """Yield the entries of query -> document -> score, numbered in place of lines."""
    for number, (query, document, score) in enumerate(iter_json_run(location), 1):
        if is_graded and not float(score).is_integer():
            where = f"{document!r} of {query!r} in {show_path(location)}"
            raise InputError(f"{where} must be a whole number; got {shorten(score)}")
        yield ScoredDocument(number, query, document, score)
