"""Rows of texts -> a split: each query once, each document once, positives and mined negatives as pairs of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from lossscope.core.choices import WHOLE
from lossscope.errors import InputError
from lossscope.io.json_files import shorten

from ..base import Split
from .held_out import HeldOut
from .row_block import RowBlock, TextLists
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

    A query without any positive is left out, and counted, where scores decide what is a positive; its texts stay
    documents.
    Raises InputError, naming file and line, for another query without any positive, for ids that some rows have and
    others have not, for one id of two texts, and where there are no rows.

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
        self.document_ids = dict[str, int]()  # id -> row, of the documents that have one
        self.rows = self.mentions = 0
        self.is_scored = False
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
            for text, score in block.scores[row] if block.scores else ():
                self.pairs.scores.append((number, self.documents[text], score))
        for lists in (block.positives, block.negatives):
            if lists.ids is not None:
                self._note_ids(block, lists)
        self.is_scored |= block.is_scored
        self.rows += len(block)
        self.notices[block.file] = block.notices

    def split(self, name: str, where: str) -> Split:
        pairs = self.pairs
        if not self.rows:
            raise InputError(f"{where} must have at least one row of the split {name!r}; there is none")
        without = set(range(len(pairs.queries))).difference(query for query, _ in pairs.positives)
        if without and not (self.is_scored and len(without) < len(pairs.queries)):
            first = min(without)
            raise InputError(
                f"{self.places[first]} must have a positive; its query, {shorten(pairs.queries[first])}, has none "
                f"in any row. The same holds for {len(without) - 1} others; lossscope data lint lists them. Leave "
                "such rows out"
            )
        unique = len(pairs.documents)
        repeated, shared = self.rows - len(self.queries), self.mentions - unique
        notices = [
            *(notice for of_file in self.notices.values() for notice in of_file),
            *(
                [f"{repeated} of {self.rows} rows repeat a query, and were joined with its first row"]
                if repeated
                else []
            ),
            *([f"{len(without)} queries have no positive: they are candidates alone"] if without else []),
            *([f"{unique} distinct documents in {self.mentions} positives and negatives"] if shared else []),
        ]
        pairs.document_ids, said = self._ids_of_documents()
        return pairs.split(name, [*notices, *said])

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

    def _note_ids(self, block: RowBlock, lists: TextLists) -> None:
        """Keep the ids of documents. Raises InputError for one id of two texts."""
        for row, pairs in enumerate(lists.pairs()):
            for text, id in pairs:
                number = self.documents[text]
                if id is not None and self.document_ids.setdefault(id, number) != number:
                    other = shorten(self.pairs.documents[self.document_ids[id]])
                    raise InputError(
                        f"documents of one id must be equal; {block.place(row)} has another text than {other} for "
                        f"{shorten(id)}"
                    )

    def _ids_of_documents(self) -> tuple[list[str], list[str]]:
        """Return the first id of each document, and what to say of ids; no ids where a document has none."""
        first: dict[int, str] = {}
        for id, number in self.document_ids.items():
            first.setdefault(number, id)
        if not first:
            return [], []
        missing, double = len(self.documents) - len(first), len(self.document_ids) - len(first)
        if missing:
            return [], [f"{missing} of {len(self.documents)} documents have no id, so that ids are not kept"]
        said = [f"{double} documents repeat a text, and are one with it, under its first id"] if double else []
        return [first[number] for number in range(len(first))], said
