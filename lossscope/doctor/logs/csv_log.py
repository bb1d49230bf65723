"""CSV, TSV and parquet tables of any trainer: Lightning's CSVLogger, exports of W&B, `LossScope.save`, your own."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from lossscope.errors import InputError
from lossscope.io.parquet_tables import read_parquet
from lossscope.io.reading import reading, show_path
from lossscope.io.text_files import read_utf8

from .assemble import assemble_log
from .base import TrainingLog
from .log_table import table_of_records

_DELIMITERS = (",", "\t", ";")
_MAX_COLUMNS = 1000
_Row = tuple[int, list[str]]  # number of its last line, and values


def read_csv_log(path: Path, columns: Mapping[str, str] | None = None) -> TrainingLog:
    """Read a table with a header; a last line that is still being written is left out.

    Args:
        path: the file, with commas, tabs or semicolons.
        columns: the user's own choice of columns.

    Raises:
        InputError: no table, a row of another length, a column twice, no loss, or a text where a number must be.
    """
    name = show_path(path)
    with reading(path, "a CSV table with a header"):
        text = read_utf8(path).removeprefix("\ufeff")
        header, rows = _split(text, name)
        notices = _drop_cut_row(header, rows, text)
        _require_rectangle(header, rows, name)
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


def _split(text: str, name: str) -> tuple[list[str], list[_Row]]:
    """Return the header and the rows that are not empty."""
    first = text.partition("\n")[0]
    delimiter = max(_DELIMITERS, key=first.count)
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True, skipinitialspace=True)
    header = [cell.strip() for cell in next(lines, [])]
    if not any(header):
        raise InputError(f"{name} must be a CSV table with a header; its first line is empty")
    if len(header) > _MAX_COLUMNS:
        raise InputError(f"{name} must have at most {_MAX_COLUMNS} columns; got {len(header)}")
    return header, [(lines.line_num, values) for values in lines if values]


def _drop_cut_row(header: list[str], rows: list[_Row], text: str) -> list[str]:
    """Drop a last row that is shorter than the header and whose line has no end; return a notice of it."""
    if rows and not text.endswith("\n") and len(rows[-1][1]) < len(header):
        line, _ = rows.pop()
        return [f"line {line} is cut off and left out"]
    return []


def _require_rectangle(header: list[str], rows: list[_Row], name: str) -> None:
    """Raise InputError unless columns have different names, and rows as many values."""
    double = next((one for one in header if header.count(one) > 1), None)
    if double is not None:
        raise InputError(f"columns of {name} must have different names; got {double!r} twice. Rename one of them")
    for line, values in rows:
        if len(values) != len(header):
            got = f"{len(values)} in line {line}"
            raise InputError(f"rows of {name} must have {len(header)} values, as its header; got {got}. Correct it")
    if not rows:
        raise InputError(f"{name} must have rows below its header; it has none. Train for some steps")
