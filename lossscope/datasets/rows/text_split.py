"""Rows of texts -> a split: each query once, each document once, positives and mined negatives as pairs of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from lossscope.core.choices import WHOLE
from lossscope.errors import InputError
from lossscope.io.json_files import shorten

from ..base import Split
from .held_out import HeldOut
from .row_block import RowBlock
from .row_files import RowFiles
from .text_pairs import TextPairs


def split_of_files(name: str, files: RowFiles, cut: HeldOut | None, where: str, most: int = 0) -> Split:
    """Return the split of files, and how many of their rows are used: see `split_of_rows`.

    Args:
        name: of the split.
        files: of rows.
        cut: which rows belong to the split; None: all.
        where: the files, for messages.
        most: number of negatives of each query that are kept, the first ones; 0: all.
    """
    read = _Counted(files.blocks())
    kept = _Counted(read if cut is None else cut.blocks(read, name))
    split = split_of_rows(name, kept, where, most)
    if cut is None or name == WHOLE:
        return replace(split, used=f"all {read.rows} rows of {where}")
    return replace(split, used=f"{kept.rows} of {read.rows} rows of {where}, its split {name}")


class _Counted:
    """Blocks, and the number of rows of those that were read."""

    def __init__(self, blocks: Iterable[RowBlock]) -> None:
        self.blocks, self.rows = blocks, 0

    def __iter__(self) -> Iterator[RowBlock]:
        for block in self.blocks:
            self.rows += len(block)
            yield block


def split_of_rows(name: str, blocks: Iterable[RowBlock], where: str, most: int = 0) -> Split:
    """Return the split of rows: equal texts are one query, unless they have other ids, and one document.

    Raises InputError, naming file and line, for a query without any positive, for ids that some rows have and others
    have not, for one id of two texts, and where there are no rows.

    Args:
        name: of the split.
        blocks: its rows.
        where: the files of these rows, for messages.
        most: number of negatives of each query that are kept, the first ones; 0: all.
    """
    rows = _RowsByText(TextPairs(most))
    for block in blocks:
        rows.add(block)
    return rows.split(name, where)


class _RowsByText:
    """Rows of the texts that were met."""

    def __init__(self, pairs: TextPairs) -> None:
        self.pairs, self.places = pairs, list[str]()
        self.queries, self.documents = dict[str, int](), dict[str, int]()
        self.rows = self.mentions = 0
        self.notices = dict[str, tuple[str, ...]]()  # of each file, the last ones

    def add(self, block: RowBlock) -> None:
        if self.rows and bool(self.pairs.query_ids) != (block.ids is not None):
            raise InputError(f"rows must all have an id, or none; {block.place(0)} differs from those before")
        for row, query, positives, negatives in zip(
            range(len(block)), block.queries, block.positives, block.negatives, strict=True
        ):
            number = self._query(block, row, query)
            self.pairs.positives += [(number, self._document(text)) for text in positives]
            self.pairs.negatives += [(number, self._document(text)) for text in negatives]
        self.rows += len(block)
        self.notices[block.file] = block.notices

    def split(self, name: str, where: str) -> Split:
        pairs = self.pairs
        if not self.rows:
            raise InputError(f"{where} must have at least one row of the split {name!r}; there is none")
        without = set(range(len(pairs.queries))).difference(query for query, _ in pairs.positives)
        if without:
            first = min(without)
            raise InputError(
                f"{self.places[first]} must have a positive; its query, {shorten(pairs.queries[first])}, has none "
                f"in any row. The same holds for {len(without) - 1} others; lossscope data lint lists them. Leave "
                "such rows out"
            )
        unique = len(pairs.documents)
        repeated, shared = self.rows - len(pairs.queries), self.mentions - unique
        notices = [
            *(notice for of_file in self.notices.values() for notice in of_file),
            *(
                [f"{repeated} of {self.rows} rows repeat a query, and were joined with its first row"]
                if repeated
                else []
            ),
            *([f"{unique} distinct documents in {self.mentions} positives and negatives"] if shared else []),
        ]
        return pairs.split(name, notices)

    def _query(self, block: RowBlock, row: int, text: str) -> int:
        key = text if block.ids is None else block.ids[row]
        number = self.queries.setdefault(key, len(self.queries))
        if number == len(self.pairs.queries):
            self.pairs.queries.append(text)
            self.places.append(block.place(row))
            self.pairs.query_ids += [] if block.ids is None else [key]
        elif self.pairs.queries[number] != text:
            raise InputError(
                f"queries of one id must be equal; {block.place(row)} has another text than {self.places[number]} for "
                f"{shorten(key)}"
            )
        return number

    def _document(self, text: str) -> int:
        number = self.documents.setdefault(text, len(self.documents))
        if number == len(self.pairs.documents):
            self.pairs.documents.append(text)
        self.mentions += 1
        return number
