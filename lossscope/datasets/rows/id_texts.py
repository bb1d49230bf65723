"""Rows of ids, as of msmarco-hard-negatives, with the texts of a corpus and of a file of queries in their place."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lossscope.errors import InputError
from lossscope.io.column_blocks import ColumnBlock
from lossscope.io.json_files import shorten
from lossscope.io.line_blocks import iter_lines
from lossscope.io.locations import suffix_of
from lossscope.io.reading import show_path

from ..formats.beir_files import read_texts

POSITIVES, NEGATIVES = ("pos", "positive_document_ids"), ("neg", "negative_document_ids")
QUERIES = ("qid", "query_id")
_HEADERS = ("id", "pid", "qid", "docid", "query_id", "_id")  # first column of a header, if a .tsv file has any
_DOCUMENT = ("pid", "docid", "id")  # key of an id with its score
_TITLE = "title"  # third column of DPR's passages


@dataclass
class IdTexts:
    """The texts of the ids that rows name: documents of `corpus`, and queries of `queries`.

    A file is JSON lines of `_id`, `title` and `text`, or a .tsv file of id and text, and perhaps title. Ids of
    negatives may stand below the names of systems; they are joined in their order.
    """

    corpus: str
    queries: str | None  # None: rows have a query's text
    most: int = 0  # negatives of each query that are kept; 0: all
    notices: dict[str, None] = field(default_factory=dict)
    _documents: Mapping[str, str] = field(default_factory=dict)
    _queries: Mapping[str, str] = field(default_factory=dict)

    def load(self, blocks: Iterable[ColumnBlock]) -> None:
        """Read the texts of all ids that some rows name."""
        documents, queries = set[str](), set[str]()
        for block in blocks:
            for name in (*POSITIVES, *NEGATIVES):
                for row, value in enumerate(block.columns.get(name, ())):
                    documents.update(self._ids(block, name, row, value))
            for name in (name for name in QUERIES if name in block.columns):
                queries.update(map(str, block.columns[name]))
        self._documents = _read(self.corpus, documents)
        self._queries = {} if self.queries is None else _read(self.queries, queries)

    def resolve(self, block: ColumnBlock) -> ColumnBlock:
        """Return rows with texts in place of ids. Raises InputError, naming the line, for an id without a text."""
        columns = dict(block.columns)
        for name in (name for name in (*POSITIVES, *NEGATIVES) if name in columns):
            columns[name] = [list(self._passages(block, name, row, value)) for row, value in enumerate(columns[name])]
        key = next((name for name in QUERIES if name in columns), None)
        if self.queries is not None:
            if key is None:
                raise InputError(f"{block.file} must have a column {' or '.join(QUERIES)} for queries={self.queries}")
            columns["query"] = [self._query(block, key, row, value) for row, value in enumerate(columns[key])]
        return replace(block, columns=columns)

    def _passages(self, block: ColumnBlock, name: str, row: int, value: Any) -> Iterator[dict[str, str]]:
        for id in self._ids(block, name, row, value):
            if id not in self._documents:
                raise InputError(_absent(f"{name!r} of {block.place(row)}", id, self.corpus))
            yield {"docid": id, "text": self._documents[id]}

    def _query(self, block: ColumnBlock, name: str, row: int, value: Any) -> str:
        if str(value) not in self._queries:
            raise InputError(_absent(f"{name!r} of {block.place(row)}", str(value), str(self.queries)))
        return self._queries[str(value)]

    def _ids(self, block: ColumnBlock, name: str, row: int, value: Any) -> list[str]:
        """Return the ids of a list, or of lists by the name of a system, each once."""
        lists = list(value.values()) if isinstance(value, dict) else [value or []]
        if isinstance(value, dict):
            self.notices[
                f"{name!r} of {block.file} has lists of several systems, such as {', '.join(list(value)[:3])}: "
                "negatives are those of all, in their order, and no score leaves out any"
            ] = None
        ids: dict[str, None] = {}
        for entry in (entry for items in lists for entry in (items if isinstance(items, list) else [items])):
            id = next((entry[key] for key in _DOCUMENT if key in entry), None) if isinstance(entry, dict) else entry
            if isinstance(id, bool) or not isinstance(id, str | int):
                raise InputError(f"{name!r} of {block.place(row)} must be ids; got {shorten(entry)}")
            ids[str(id)] = None
        if self.most and name in NEGATIVES:  # and some more, as positives leave the list
            positives = next((block.columns[other][row] for other in POSITIVES if other in block.columns), None)
            return list(ids)[: self.most + len(positives or ())]
        return list(ids)


def _read(location: str, wanted: Collection[str]) -> Mapping[str, str]:
    """Return id -> text of some ids. Raises InputError for a line without a text, and for one id twice."""
    if suffix_of(location) != ".tsv":
        return read_texts(location, wanted)
    texts: dict[str, str] = {}
    has_title, name = False, show_path(location)
    for number, line in iter_lines(location):
        id, *rest = line.rstrip("\r").split("\t")
        if number == 1 and id.lower() in _HEADERS:
            has_title = rest[1:] == [_TITLE]
            continue
        if len(rest) != 1 + has_title:
            raise InputError(
                f"line {number} of {name} must be an id, a tab and a text; got {shorten(line)}. Write JSON lines of "
                '{"_id", "title", "text"}, or a header id, text, title'
            )
        if id in wanted:
            if id in texts:
                raise InputError(f"ids of {name} must be unique; line {number} has {shorten(id)} again")
            texts[id] = f"{rest[1]} {rest[0]}".strip() if has_title else rest[0]
    return texts


def _absent(where: str, id: str, location: str) -> str:
    return f"{where} must be of {show_path(location)}; it has no {shorten(id)}: name the file that the ids are of"
