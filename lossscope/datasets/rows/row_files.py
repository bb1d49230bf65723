"""Files of rows: JSON, CSV, TSV, parquet, and what `save_to_disk` writes; several are read one after the other."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from lossscope.errors import InputError
from lossscope.io.column_blocks import ColumnBlock, Keep, Only
from lossscope.io.csv_rows import iter_csv_rows
from lossscope.io.file_states import FileState, unchanged_since
from lossscope.io.json_files import shorten
from lossscope.io.json_lines import iter_json_lines
from lossscope.io.locations import is_url, list_files, location_exists, path_of, size_of, suffix_of
from lossscope.io.parquet_rows import iter_parquet_rows
from lossscope.io.reading import show_path
from lossscope.io.saved_datasets import iter_saved_rows

from .column_choice import ColumnChoice
from .column_names import ColumnNames
from .id_texts import NEGATIVES, POSITIVES, QUERIES, IdTexts
from .row_block import RowBlock
from .row_texts import row_block

_Reader = Callable[[str, Keep, Only], Iterator[ColumnBlock]]
READERS: dict[str, _Reader] = {
    ".jsonl": iter_json_lines,
    ".ndjson": iter_json_lines,
    ".json": iter_json_lines,
    ".csv": iter_csv_rows,
    ".tsv": iter_csv_rows,
    ".parquet": iter_parquet_rows,
    ".arrow": iter_saved_rows,
}
"""Suffix -> the reader of such files; `.gz` may follow those of text files."""


@dataclass(frozen=True)
class RowFiles:
    """Files of rows, in the order in which they are read."""

    files: tuple[str, ...]
    names: ColumnNames  # of their columns
    cut: float | None = None  # score from which on a pair is a positive; None: by the scale of the scores
    ids: IdTexts | None = None  # the texts of rows of ids
    # number of a file -> which column has which role, as the last pass over all of its blocks decided
    _choices: dict[int, ColumnChoice] = field(default_factory=dict, init=False, compare=False, repr=False)
    _states: dict[str, FileState] = field(default_factory=dict, init=False, compare=False, repr=False)  # of local files

    @classmethod
    def parse(cls, text: str, names: ColumnNames, cut: float | None = None, ids: IdTexts | None = None) -> RowFiles:
        """Return the files of a path, a URL, a folder, a pattern, or several of them with commas between.

        Raises InputError where there are none, and for a file of another suffix.
        """
        pieces = [text] if (is_url(text) and "," not in text) or location_exists(text) else text.split(",")
        files = [file for piece in pieces if piece.strip() for file in _row_files(piece.strip())]
        if not files:
            raise InputError(f"file must name files of rows; got {text!r}")
        return cls(tuple(files), names, cut, ids)

    @property
    def size(self) -> int:
        """Bytes of all files; 0 where a URL does not say."""
        sizes = [size_of(file) for file in self.files]
        return sum(sizes) if all(sizes) else 0

    def blocks(self, only: Collection[tuple[int, int]] | None = None) -> Iterator[RowBlock]:
        """Yield the rows of all files in blocks.

        Raises InputError, naming file and line, for a row that cannot be used, and for a file that is no longer what
        it was when its rows were first read.

        Args:
            only: keys of the blocks that are yielded, others being passed over; None: all.
        """
        if self.ids is not None and only is None:
            with unchanged_since(*map(self._state, self._local)):
                self.ids.load(block for file in self.files for block in READERS[suffix_of(file)](file, _is_id, None))
        for number, file in enumerate(self.files):
            wanted = None if only is None else {block for of, block in only if of == number}
            if wanted is None or number not in self._choices:
                self._choices[number] = ColumnChoice(self.names, self.cut, partial(_iter_column, file))
            if wanted is None or wanted:
                with unchanged_since(*(self._state(local) for local in self._local if local == file)):
                    yield from _iter_rows(file, self._choices[number], number, wanted, self.ids)

    @property
    def _local(self) -> list[str]:
        return [file for file in self.files if not is_url(file)]

    def _state(self, file: str) -> FileState:
        """Return the state of a local file when it was first read."""
        if file not in self._states:
            self._states[file] = FileState.of(path_of(file))
        return self._states[file]


def _iter_column(file: str, column: str) -> Iterator[ColumnBlock]:
    """Yield one column of a whole file."""
    return READERS[suffix_of(file)](file, lambda name: name == column, None)


def _iter_rows(
    file: str, choice: ColumnChoice, number: int, only: Collection[int] | None, ids: IdTexts | None
) -> Iterator[RowBlock]:
    suffix, names = suffix_of(file), choice.names
    for block in READERS[suffix](file, choice.note_column, only):
        if not block.lines:
            continue
        if ids is not None:
            rows = row_block(ids.resolve(block), choice, number)
            yield replace(rows, notices=(*ids.notices, *rows.notices))
        else:
            yield row_block(_with_lists(block, names) if READERS[suffix] is iter_csv_rows else block, choice, number)


def _is_id(column: str) -> bool:
    return column in (*POSITIVES, *NEGATIVES, *QUERIES)


def _row_files(location: str) -> Sequence[str]:
    """Return the files of a location; of a folder or a pattern those that have a known suffix."""
    files = list_files(location)
    known = [file for file in files if suffix_of(file) in READERS]
    if not known or (len(known) < len(files) == 1):
        got = suffix_of(files[0]) or "none"
        raise InputError(f"suffix of {show_path(location)} must be one of {', '.join(READERS)}; got {got}")
    return known


def _with_lists(block: ColumnBlock, names: ColumnNames) -> ColumnBlock:
    """Return a block of a CSV file whose empty values are missing, and JSON lists are lists, except as queries and ids.

    A CSV file cannot tell an empty text from none.
    """
    lists = [name for name in block.columns if name not in (*names.query, *names.score, *names.id)]
    return replace(block, columns={**block.columns, **{name: _cells(block, name) for name in lists}})


def _cells(block: ColumnBlock, name: str) -> list[Any]:
    values = block.columns[name]
    if "" in values:
        values = [value or None for value in values]
    if any(value and value[0] == "[" for value in values):
        return [_cell(block, name, row, value) for row, value in enumerate(values)]
    return values


def _cell(block: ColumnBlock, name: str, row: int, value: str | None) -> Any:
    """Return a value as a list where it is a JSON list of texts. Raises InputError for what looks like another list."""
    if not value or value[0] != "[":
        return value
    try:
        texts = json.loads(value)
    except (ValueError, RecursionError):
        texts = None
    if isinstance(texts, list) and all(isinstance(text, str) for text in texts):
        return texts
    if value.startswith(("['", '["')):
        where = f"{name!r} of {block.place(row)}"
        raise InputError(
            f"{where} must be a text or a JSON list of texts; got {shorten(value)}: write it as json.dumps"
        )
    return value
