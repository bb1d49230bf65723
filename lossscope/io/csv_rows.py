"""Rows of a CSV file of any size, in blocks: a header, quotes as RFC 4180 has them, and as many values in every row."""

from __future__ import annotations

import contextlib
import csv
from collections.abc import Iterator, Sequence
from itertools import count, islice

from lossscope.errors import InputError

from .column_blocks import ColumnBlock, Keep, Only, require_few_columns
from .limits import MAX_ROW_LETTERS
from .line_blocks import iter_line_blocks
from .reading import show_path

_ROWS = 512  # of a block: what is made of them fits into a processor's cache


def iter_csv_rows(location: str, keep: Keep, only: Only = None) -> Iterator[ColumnBlock]:
    """Yield the rows of a CSV file in blocks, every value a text; empty lines are no rows.

    Args:
        location: path or URL.
        keep: whether a column is read, by its name in the header.
        only: numbers of the blocks that are yielded; None: all.

    Raises:
        InputError: no header, one name twice, a row of another length, or quotes that are not closed, by its line.
    """
    return _CsvRows(location).blocks(keep, only)


class _CsvRows:
    """A CSV file that is being read."""

    def __init__(self, location: str) -> None:
        self.location, self.name, self.done = location, show_path(location), 0

    def blocks(self, keep: Keep, only: Only) -> Iterator[ColumnBlock]:
        rows = self._rows()
        with _long_fields():
            _, header = next(rows, (1, []))
        places = {name: place for place, name in enumerate(header) if keep(name)}
        self._require_header(header, list(places))
        for number in count():
            with _long_fields():
                block = list(islice(rows, _ROWS))
            if not block:
                return
            if only is not None and number not in only:
                continue
            self._require_lengths(block, len(header))
            columns = {name: [row[place] for _, row in block] for name, place in places.items()}
            yield ColumnBlock(number, self.name, [line for line, _ in block], columns, self.done)

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield rows, each with the number of the line that it begins in."""
        reader = csv.reader(self._lines(), strict=True)
        while True:
            line = reader.line_num + 1
            try:
                row = next(reader)
            except StopIteration:
                return
            except csv.Error as problem:
                what = f"got {problem} in the row that begins in line {line}: write it with a CSV writer"
                raise InputError(f"{self.name} must be a whole CSV table; {what}") from None
            if row:
                yield line, row

    def _lines(self) -> Iterator[str]:
        for block in iter_line_blocks(self.location):
            self.done = block.done
            for line in block.lines:
                yield f"{line}\n"

    def _require_header(self, header: Sequence[str], kept: Sequence[str]) -> None:
        if not header:
            raise InputError(f"{self.name} must be a whole CSV table; it has no header")
        double = next((name for name in kept if header.count(name) > 1), None)
        if double is not None:
            raise InputError(f"columns of {self.name} must have different names; got {double!r} twice")
        require_few_columns(kept, self.name)

    def _require_lengths(self, block: Sequence[tuple[int, list[str]]], length: int) -> None:
        for line, row in block:
            if len(row) != length:
                got = f"{len(row)} in line {line}"
                raise InputError(f"rows of {self.name} must have {length} values, as its header; got {got}")


@contextlib.contextmanager
def _long_fields() -> Iterator[None]:
    """Let values be as long as texts of rows may be; csv's own limit, which is of the process, is 131,072 letters."""
    before = csv.field_size_limit(MAX_ROW_LETTERS)
    try:
        yield
    finally:
        csv.field_size_limit(before)
