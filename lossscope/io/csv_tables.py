"""CSV tables, read strictly (rows as long as the header, columns named once and typed); texts come back exactly."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

import pandas as pd

from .column_blocks import require_columns
from .column_types import ColumnType, require_types
from .csv_rows import decode_csv, long_values
from .exact_texts import IDS_IN_CSV, IN_CSV
from .reading import reading, show_path
from .text_files import read_utf8


def read_csv(
    path: Path | str,
    types: Mapping[str, ColumnType] | None = None,
    growing: bool = False,
    needed: Sequence[str] = (),
) -> pd.DataFrame:
    """Return the rows of a CSV file with a header.

    Args:
        path: the file.
        types: column -> type, of those columns that must have one; a column that is not there is no error. The texts
            of a column of texts are those of the file, `007` and `NA` among them; nothing is a missing value.
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
            columns = [column for column, name in enumerate(header) if (types or {}).get(IN_CSV.read(name)) == "text"]
            texts: dict[int, list[str | float]] = {column: [] for column in columns}
            for _, row in rows:  # each is compared with the header; pandas types numbers a few times as fast
                for column, values in texts.items():
                    values.append(_read_text(row[column]))
        table = _map_texts(pd.read_csv(io.StringIO(text)), IN_CSV.read)
        table = table.assign(**{str(table.columns[column]): values for column, values in texts.items()})
        table = _rename(table, IN_CSV.read)
        require_types(table, types or {}, show_path(path))
        return table


def _read_text(cell: str) -> str | float:
    """Return the text of a cell; NaN of an empty one."""
    return IDS_IN_CSV.read(cell) if cell else math.nan


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


def format_csv(table: pd.DataFrame, ids: Collection[str] = ("query_id", "candidate_id")) -> str:
    """Return the text of a CSV file from which `read_csv` reads the same texts, and no spreadsheet a formula.

    A text that begins with = + - or @ gets an apostrophe before it, unless it is a number. A text with control
    characters, or with blanks around it, is written as a JSON string: see `exact_texts.IN_CSV`.

    Args:
        table: the rows.
        ids: columns of ids, where an empty text is no missing value; other columns do not tell the two apart.
    """
    written = {name: column.map(_write_id) for name, column in table.items() if name in ids}
    safe = _map_texts(table, IN_CSV.write).assign(**{str(name): column for name, column in written.items()})
    return str(_rename(safe, IN_CSV.write).to_csv(index=False, lineterminator="\n"))


def _write_id(value: object) -> object:
    return IDS_IN_CSV.write(value) if isinstance(value, str) else value


def _rename(table: pd.DataFrame, change: Callable[[str], str]) -> pd.DataFrame:
    return table.rename(columns=lambda name: change(name) if isinstance(name, str) else name)


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
