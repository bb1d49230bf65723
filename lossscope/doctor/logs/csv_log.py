"""Read CSV, TSV and parquet tables of any trainer: Lightning's CSVLogger, exports of W&B, `LossScope.save`."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from lossscope.errors import InputError
from lossscope.io.column_blocks import require_columns
from lossscope.io.csv_rows import CsvRow, decode_csv, long_values
from lossscope.io.parquet_tables import read_parquet
from lossscope.io.reading import reading, show_path
from lossscope.io.text_files import read_utf8

from .assemble import assemble_log
from .base import TrainingLog
from .log_table import table_of_records

_DELIMITERS = (",", "\t", ";")


def read_csv_log(path: Path, columns: Mapping[str, str] | None = None) -> TrainingLog:
    """Read a table with a header; a last line that is still being written is left out.

    Args:
        path: the file, with commas, tabs or semicolons.
        columns: the user's choice of columns.

    Raises:
        InputError: no table, a row of another length, a column twice, no loss, or a text where a number must be.
    """
    name = show_path(path)
    with reading(path, "a CSV table with a header"), long_values():
        header, rows, notices = _decode(read_utf8(path), name)
    records = (dict(zip(header, values, strict=True)) for _, values in rows)
    table = table_of_records(records, name, lambda row: f"line {rows[row][0]}")
    return assemble_log(replace(table, has_empty_cells=True), columns, notices=notices)


def read_parquet_log(path: Path, columns: Mapping[str, str] | None = None) -> TrainingLog:
    """Read a parquet table, such as `LossScope.save` writes. Raises InputError as read_csv_log does."""
    frame = read_parquet(path)
    filled = frame.astype(object).where(frame.notna(), None)
    records = ({str(key): value for key, value in row.items()} for row in filled.to_dict("records"))
    table = replace(table_of_records(records, show_path(path)), has_empty_cells=True)
    return assemble_log(table, columns)


def delimiter_of(header: str) -> str:
    """Return the character that separates the names of a header."""
    return max(_DELIMITERS, key=header.count)


def _decode(text: str, name: str) -> tuple[list[str], list[CsvRow], list[str]]:
    """Return the header, the rows, and a notice where the last line is cut off. Raises InputError."""
    delimiter, notices = delimiter_of(text.partition("\n")[0]), list[str]()
    names, rows = decode_csv(io.StringIO(text, newline=""), name, delimiter, skips_blanks=True)
    before, _, last = text.rpartition("\n")
    if before and last and '"' not in last and last.count(delimiter) + 1 < len(names):
        notices.append(f"line {before.count(chr(10)) + 2} is cut off and left out")
        names, rows = decode_csv(io.StringIO(before, newline=""), name, delimiter, skips_blanks=True)
    header, whole = [cell.strip() for cell in names], list(rows)
    require_columns(header, name)
    if not whole:
        raise InputError(f"{name} must have rows below its header; it has none. Train for some steps")
    return header, whole, notices
