"""Relevance judgements (qrels): which documents are relevant to which query, as BEIR and TREC write them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lossscope.errors import InputError

from .json_files import shorten
from .line_blocks import iter_lines
from .reading import show_path


@dataclass(frozen=True, slots=True)
class Judgement:
    """One line of a file of judgements."""

    line: int  # counted from 1
    query: str  # id
    document: str  # id
    score: int  # above 0: relevant


def iter_judgements(location: str) -> Iterator[Judgement]:
    """Yield the lines of `query-id <tab> corpus-id <tab> score`, below a header or not, or of TREC's four columns.

    Raises InputError, naming file and line, for a line of other columns, and for a score that is no whole number.
    """
    name = show_path(location)
    for number, line in iter_lines(location):
        if not (number == 1 and _is_header(line)):
            yield _judgement(line, number, name)


def _columns(line: str) -> list[str]:
    return line.rstrip("\r").split("\t") if "\t" in line else line.split()


def _is_header(line: str) -> bool:
    return _columns(line)[-1].strip().lower() == "score"


def _judgement(line: str, number: int, name: str) -> Judgement:
    columns = _columns(line)
    if len(columns) not in (3, 4):
        raise InputError(
            f"line {number} of {name} must be query-id, corpus-id, score, with tabs between; got {shorten(line)}"
        )
    score = columns[-1].strip()
    if not score.removeprefix("-").isdecimal() or len(score) > 9:
        raise InputError(f"score in line {number} of {name} must be a whole number; got {shorten(score)}")
    return Judgement(number, columns[0], columns[-2], int(score))
