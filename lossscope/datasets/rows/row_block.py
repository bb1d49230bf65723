"""Some rows of text data: queries, the positives of each, the negatives of each, and where they stand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate


@dataclass(frozen=True)
class TextLists:
    """A list of texts for each of n rows, one after the other."""

    texts: list[str]
    counts: list[int]  # n
    ids: list[str | None] | None = None  # of the texts, None where a text has none; None: no text has any

    @classmethod
    def of(cls, lists: Sequence[Sequence[tuple[str, str | None]]]) -> TextLists:
        """Return the lists of pairs of a text and its id."""
        pairs = [pair for row in lists for pair in row]
        ids = [id for _, id in pairs]
        return cls([text for text, _ in pairs], list(map(len, lists)), ids if any(ids) else None)

    def __iter__(self) -> Iterator[list[str]]:
        ends = list(accumulate(self.counts))
        return (self.texts[end - count : end] for count, end in zip(self.counts, ends, strict=True))

    def pairs(self) -> Iterator[list[tuple[str, str | None]]]:
        """Yield the texts of each row with their ids."""
        ids = self.ids or [None] * len(self.texts)
        ends = list(accumulate(self.counts))
        pairs = list(zip(self.texts, ids, strict=True))
        return (pairs[end - count : end] for count, end in zip(self.counts, ends, strict=True))

    def take(self, rows: Sequence[int]) -> TextLists:
        """Return the lists of some rows."""
        if self.ids is not None:
            pairs = list(self.pairs())
            return TextLists.of([pairs[row] for row in rows])
        lists = list(self)
        return TextLists([text for row in rows for text in lists[row]], [self.counts[row] for row in rows])


@dataclass(frozen=True)
class RowBlock:
    """Rows of one file, in their order."""

    key: tuple[int, int]  # number of the file, and of the block in it
    file: str  # as messages name it
    lines: Sequence[int]  # where each row begins, counted from 1
    queries: list[str]
    ids: list[str] | None  # of the queries; None: the file has none
    positives: TextLists
    negatives: TextLists
    done: int = 0  # bytes of the file that were read so far
    unit: str = "line"  # what `lines` counts
    notices: tuple[str, ...] = ()  # what the user should know of its file, as far as it was read
    is_scored: bool = False  # whether a score decided what is a positive, so that a row may have none
    scores: list[list[tuple[str, float]]] | None = None  # texts of each row with their scores; None: no scores

    def __len__(self) -> int:
        return len(self.queries)

    def place(self, row: int) -> str:
        """Return `line 17 of FILE`."""
        return f"{self.unit} {self.lines[row]} of {self.file}"

    def take(self, rows: Sequence[int]) -> RowBlock:
        """Return some of the rows."""
        return RowBlock(
            self.key,
            self.file,
            [self.lines[row] for row in rows],
            [self.queries[row] for row in rows],
            self.ids and [self.ids[row] for row in rows],
            self.positives.take(rows),
            self.negatives.take(rows),
            self.done,
            self.unit,
            self.notices,
            self.is_scored,
            self.scores and [self.scores[row] for row in rows],
        )
