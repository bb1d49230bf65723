"""What a finding is: rows of a data set with one fault, their number, and the first few of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from .hashes import Flags
from .row_hashes import RowHashes

Severity = Literal["error", "warning"]
SEVERITIES: tuple[Severity, ...] = ("warning", "error")  # the mildest first
EXAMPLES = 5  # rows that are shown of each finding


@dataclass(frozen=True)
class TextRow:
    """One row as it stands in its file."""

    query: str
    positives: list[str]
    negatives: list[str]


@dataclass(frozen=True)
class Tables:
    """Hashes of the rows of every split, in their order, and the limit that was chosen."""

    splits: Sequence[RowHashes]
    max_words: int


class Check(Protocol):
    """A module of this package with one finding: its first line is what it means."""

    ID: str  # in JSON and tables
    SEVERITY: Severity
    ADVICE: str  # what to do

    def flags(self, tables: Tables, split: int) -> Flags:
        """Return which rows of a split have the fault."""

    def example(self, row: TextRow, tables: Tables, split: int) -> str:
        """Return the text of a row that shows the fault."""


@dataclass(frozen=True)
class Example:
    """One row of a finding."""

    file: str
    line: int  # of the row in its file, from 1
    text: str  # shortened, without what steers terminals
    split: str | None = None  # where several are looked at


@dataclass(frozen=True)
class Finding:
    """The rows that have one fault."""

    id: str
    severity: Severity
    count: int  # rows
    share: float  # of all rows
    examples: tuple[Example, ...]  # the first ones
    advice: str
