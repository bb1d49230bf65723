"""CSV tables, read strictly (rows as long as the header, columns named once and typed) and written without formulas."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from lossscope.visible_text import show_text

from .column_blocks import require_columns
from .column_types import ColumnType, require_types
from .csv_rows import decode_csv, long_values
from .reading import reading, show_path
from .text_files import read_utf8

_FORMULA = re.compile(r"'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")  # what spreadsheets run, after any apostrophes
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|-?inf", re.IGNORECASE)


def read_csv(
    path: Path | str,
    types: Mapping[str, ColumnType] | None = None,
    growing: bool = False,
    needed: Sequence[str] = (),
) -> pd.DataFrame:
    """Return the rows of a CSV file with a header.

    Args:
        path: the file.
        types: column -> type, of those columns that must have one; a column that is not there is no error.
        growing: whether rows are still appended, so that a last line without its end is left out.
        needed: of several tables with an empty line between, as `lossscope diagram` prints them, the first that has
            these columns is read.

    Raises:
        InputError: the file is missing, not UTF-8, empty, has a row of another length or a column twice, or a column of
            another type.
    """
    with reading(path, "a whole CSV table"):
        text = read_utf8(path)
        text = text[: text.rfind("\n") + 1] if growing else text
        text = _table_with(needed, text) if needed else text
        with long_values():
            header, rows = decode_csv(io.StringIO(text.removeprefix("\ufeff")), show_path(path))
            require_columns(header, show_path(path))
            for _ in rows:  # each is compared with the header; pandas types them a few times as fast as Python can
                pass
        table: pd.DataFrame = _map_texts(pd.read_csv(io.StringIO(text)), restore_text)
        require_types(table, types or {}, show_path(path))
        return table


def _table_with(columns: Sequence[str], text: str) -> str:
    """Return the first of several tables whose header has these columns; the whole text if none has."""
    tables: list[str] = []
    for part in text.split("\n\n"):
        if tables and tables[-1].count('"') % 2:  # the empty line is within a quoted value
            tables[-1] += f"\n\n{part}"
        else:
            tables.append(part)
    headers = [set(next(csv.reader([table.partition("\n")[0]]), [])) for table in tables]
    return next((table for table, names in zip(tables, headers, strict=True) if names >= set(columns)), text)


def format_csv(table: pd.DataFrame) -> str:
    """Return the text of a CSV file that no spreadsheet takes for formulas.

    A text that begins with = + - @, a tab or a line's end gets an apostrophe before it, which `read_csv` takes away;
    a text that is a number stays as it is. Control characters are written as \\xNN.
    """
    safe = _map_texts(table, _disarm).rename(columns=lambda name: _disarm(name) if isinstance(name, str) else name)
    return str(safe.to_csv(index=False, lineterminator="\n"))


def _map_texts(table: pd.DataFrame, change: Callable[[str], str]) -> pd.DataFrame:
    """Return the table with the texts of its columns changed; columns of numbers are left alone."""
    changed = {
        index: column.map(lambda value: change(value) if isinstance(value, str) else value)
        for index, (_, column) in enumerate(table.items())
        if not pd.api.types.is_numeric_dtype(column.dtype) and _has(column, change)
    }
    columns = [changed.get(index, column) for index, (_, column) in enumerate(table.items())]
    return pd.concat(columns, axis=1) if changed else table


def _has(column: pd.Series[str], change: Callable[[str], str]) -> bool:
    """Return whether any text of a column is changed."""
    return any(isinstance(value, str) and change(value) != value for value in column.unique())


def _disarm(text: str) -> str:
    """Return a text that ends no row, is no formula, and steers no terminal."""
    text = show_text(re.sub("\r\n?", "\n", text), "\n\t")
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def restore_text(text: str) -> str:
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text
