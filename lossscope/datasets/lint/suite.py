"""Look at rows of text data for every fault that needs no model, in one pass and about 90 bytes a row."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from lossscope.core.types import Progress
from lossscope.errors import InputError
from lossscope.visible_text import show_text

from ..rows.row_source import RowSource
from . import (
    duplicates,
    empty_text,
    long_text,
    near_copies,
    near_duplicates,
    no_positive,
    other_positive_as_negative,
    positive_as_negative,
    short_text,
    split_leak,
)
from .base import EXAMPLES, SEVERITIES, Check, Example, Finding, Severity, Tables
from .hashes import Hashes, repeated
from .near_pairs import MOST
from .row_hashes import RowHashes
from .row_pass import PlacedRows, RowPass

CHECKS = cast(
    "tuple[Check, ...]",
    (
        positive_as_negative,
        no_positive,
        empty_text,
        short_text,
        split_leak,
        duplicates,
        near_duplicates,
        near_copies,
        other_positive_as_negative,
        long_text,
    ),
)
"""All of them; errors first."""
MAX_WORDS = 512  # of a text that is not long: about what encoders of 512 tokens read, and more
_LETTERS = 80  # of an example


@dataclass(frozen=True)
class LintReport:
    """What was found in how many rows."""

    rows: int
    queries: int  # different ones
    documents: int  # different positives
    findings: tuple[Finding, ...]
    checked: tuple[str, ...]  # ids
    notes: tuple[str, ...] = ()  # what was left out, as it would have cost too much

    def reaches(self, level: Severity) -> bool:
        """Return whether any finding is at least that severe."""
        return any(SEVERITIES.index(finding.severity) >= SEVERITIES.index(level) for finding in self.findings)


def lint(
    sources: Mapping[str, RowSource],
    against: Mapping[str, RowSource] | None = None,
    max_words: int = MAX_WORDS,
    progress: Progress | None = None,
) -> LintReport:
    """Return what the rows of one file, or of the splits of a data set, have of each fault; counts are of rows.

    Texts are equal when their normal forms are. Every row is decoded once, and those blocks again that hold
    examples, or positives that may be near copies.

    Args:
        sources: rows by the name of their split, train first.
        against: rows that may not occur in these again; they get no other finding.
        max_words: of a text that is not long.
        progress: called with (label, done, of) megabytes of a source that knows its size.

    Raises:
        InputError: a row that cannot be read, by its line, and where there are no rows.
    """
    if max_words < 1:
        raise InputError(f"max_words must be at least 1; got {max_words}")
    with contextlib.ExitStack() as stack:
        passes = [RowPass(name, source, max_words, counted=False) for name, source in (against or {}).items()]
        passes += [RowPass(name, source, max_words) for name, source in sources.items()]
        for row_pass in passes:
            stack.callback(row_pass.table.close)
            row_pass.read(progress)
        return _report(passes, max_words)


def _report(passes: Sequence[RowPass], max_words: int) -> LintReport:
    tables = Tables([row_pass.table for row_pass in passes], max_words)
    counted = [row_pass.table for row_pass in passes if row_pass.counted]
    rows = sum(map(len, counted))
    if not rows:
        raise InputError(
            f"{', '.join(row_pass.name for row_pass in passes if row_pass.counted)} must have rows; there are none"
        )
    checks = [check for check in CHECKS if len(passes) > 1 or check is not split_leak]
    first = [_first_rows(check, tables, passes) for check in checks]
    texts = [
        row_pass.rows({row for _, wanted in first for row in wanted[split]}) for split, row_pass in enumerate(passes)
    ]
    found = [
        Finding(
            check.ID, check.SEVERITY, count, count / rows, _examples(check, wanted, texts, tables, passes), check.ADVICE
        )
        for check, (count, wanted) in zip(checks, first, strict=True)
    ]
    return LintReport(
        rows,
        _number_of_distinct([table.queries for table in counted]),
        _number_of_distinct([table.positives for table in counted]),
        tuple(finding for finding in found if finding.count),
        tuple(finding.id for finding in found),
        _notes(counted, passes),
    )


def _notes(tables: Sequence[RowHashes], passes: Sequence[RowPass]) -> tuple[str, ...]:
    """Say how rows were read, and how many texts were not compared with all that share a part with them."""
    read = dict.fromkeys(notice for row_pass in passes for of_file in row_pass.notices.values() for notice in of_file)
    cut = sum(table.near_duplicates.cut for table in tables)
    if not cut:
        return tuple(read)
    return (
        *read,
        f"{near_duplicates.ID}: {cut:,} positives share their beginning or end with more than {MOST - 1} others, as "
        "instances of a template do; by that part they were not compared, so that a word more or less may be missed",
    )


def _first_rows(check: Check, tables: Tables, passes: Sequence[RowPass]) -> tuple[int, list[list[int]]]:
    """Return how many rows have a fault, and the first of them, of each split."""
    count, first, missing = 0, [], EXAMPLES
    for split, row_pass in enumerate(passes):
        flagged = np.flatnonzero(check.flags(tables, split)) if row_pass.counted else np.zeros(0, np.int64)
        count += len(flagged)
        first.append(flagged[:missing].tolist())
        missing -= len(first[-1])
    return count, first


def _examples(
    check: Check, first: Sequence[Sequence[int]], texts: Sequence[PlacedRows], tables: Tables, passes: Sequence[RowPass]
) -> tuple[Example, ...]:
    """Return those rows of each split that have a fault, as they are shown."""
    is_several, examples = sum(row_pass.counted for row_pass in passes) > 1, []
    for split, rows in enumerate(first):
        for file, line, row in (texts[split][number] for number in rows if number in texts[split]):
            text = _shorten(check.example(row, tables, split))
            examples.append(Example(file, line, text, passes[split].name if is_several else None))
    return tuple(examples)


def _number_of_distinct(hashes: Sequence[Hashes]) -> int:
    return repeated(hashes[0] if len(hashes) == 1 else np.concatenate(hashes))[0]


def _shorten(text: str) -> str:
    text = " ".join(text[: 4 * _LETTERS].split())
    return show_text(text if len(text) <= _LETTERS else f"{text[: _LETTERS - 3]}...")
