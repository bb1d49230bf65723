"""Rows of CSV, of files of any size in blocks: a header, quotes as in RFC 4180, and as many values in every row."""

from __future__ import annotations

import contextlib
import csv
from collections.abc import Iterable, Iterator
from itertools import count, islice
from typing import Any

from lossscope.errors import InputError

from .column_blocks import ColumnBlock, Keep, Only, require_columns
from .limits import MAX_ROW_LETTERS
from .line_blocks import LineBlock, iter_line_blocks
from .locations import suffix_of
from .reading import show_path

_ROWS = 512  # of a block: what is made of them fits into a processor's cache
CsvRow = tuple[int, list[str]]  # number of the line that it begins in, and its values


def iter_csv_rows(
    location: str, keep: Keep, only: Only = None, ragged: dict[int, int] | None = None
) -> Iterator[ColumnBlock]:
    """Yield the rows of a CSV file in blocks, every value a text; of a .tsv file with tabs between values.

    Args:
        location: path or URL.
        keep: whether a column is read, by its name in the header.
        only: numbers of the blocks that are yielded; None: all.
        ragged: gets line -> number of values of the rows of another length than the header; None: they are refused.

    Raises:
        InputError: as decode_csv does, and for one name twice among the columns that are read.
    """
    name, source = show_path(location), _Lines(iter_line_blocks(location))
    with long_values():
        delimiter = "\t" if suffix_of(location) == ".tsv" else ","
        header, rows = decode_csv(source.lines(), name, delimiter, ragged=ragged)
    kept = [column for column in header if keep(column)]
    require_columns(kept, name)
    positions = {column: header.index(column) for column in kept}
    for number in count():
        with long_values():
            block = list(islice(rows, _ROWS))
        if not block:
            return
        if only is None or number in only:
            columns = {column: [row[position] for _, row in block] for column, position in positions.items()}
            yield ColumnBlock(number, name, [line for line, _ in block], columns, source.done)


class _Lines:
    """The lines of a file, and how many bytes of it were read."""

    def __init__(self, blocks: Iterator[LineBlock]) -> None:
        self._blocks, self.done = blocks, 0

    def lines(self) -> Iterator[str]:
        for block in self._blocks:
            self.done = block.done
            for line in block.lines:
                yield f"{line}\n"


def decode_csv(
    lines: Iterable[str],
    name: str,
    delimiter: str = ",",
    skips_blanks: bool = False,
    ragged: dict[int, int] | None = None,
) -> tuple[list[str], Iterator[CsvRow]]:
    """Return the header of lines of CSV, and the rows below it, which are read one by one; empty lines are no rows.

    Args:
        lines: with their ends.
        name: of the file, for messages.
        delimiter: between values.
        skips_blanks: whether blanks behind a delimiter are no part of a value.
        ragged: gets line -> number of values of the rows of another length than the header; None: they are refused.

    Raises:
        InputError: no header; from the rows, one of another length or quotes that are not closed, by its line.
    """
    reader = csv.reader(lines, delimiter=delimiter, strict=True, skipinitialspace=skips_blanks)
    rows = _iter_rows(reader, name, delimiter)
    _, header = next(rows, (1, []))
    if not header:
        raise InputError(f"{name} must be a whole CSV table; it has no header")
    return header, _of_length(rows, len(header), name, ragged)


def _iter_rows(reader: Any, name: str, delimiter: str) -> Iterator[CsvRow]:
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as problem:
            what = f"got {problem} in the row that begins in line {line}: write it with a CSV writer"
            if delimiter == "\t":
                out = f"{name.removesuffix('.tsv')}.jsonl"
                what += (
                    f". Where quotes are letters of its texts, in Python: import pandas as pd; pd.read_csv({name!r}, "
                    f"sep='\\t', quoting=3).to_json({out!r}, orient='records', lines=True)"
                )
            raise InputError(f"{name} must be a whole CSV table; {what}") from None
        if row:
            yield line, row


def _of_length(rows: Iterator[CsvRow], length: int, name: str, ragged: dict[int, int] | None) -> Iterator[CsvRow]:
    """Yield the rows that are as long as the header. Raises InputError for another one, unless `ragged` takes it."""
    for line, row in rows:
        if len(row) == length:
            yield line, row
        elif ragged is not None:
            ragged[line] = len(row)
        else:
            raise InputError(f"rows of {name} must have {length} values, as its header; got {len(row)} in line {line}")


@contextlib.contextmanager
def long_values() -> Iterator[None]:
    """Let values be as long as texts of rows may be; csv's own limit, which is of the process, is 131,072 letters."""
    before = csv.field_size_limit(MAX_ROW_LETTERS)
    try:
        yield
    finally:
        csv.field_size_limit(before)
