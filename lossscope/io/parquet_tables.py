"""Parquet files: pages with checksums, as many rows as a file can hold, columns of known types."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from lossscope.errors import InputError

from .arrow_rows import is_text
from .column_blocks import require_different
from .column_types import ColumnType, require_types
from .files import fingerprint, require_file, write_atomically
from .parquet_rows import open_parquet, require_few_copies
from .reading import reading, show_path


def write_parquet(path: Path, rows: pd.DataFrame) -> str:
    """Write rows atomically, every page with its checksum; return the SHA-256 of the file, in hex."""
    with write_atomically(path) as part:
        rows.to_parquet(part, index=False, write_page_checksum=True)
        return fingerprint(part)


def read_parquet(
    path: Path | str,
    types: Mapping[str, ColumnType] | None = None,
    complete: Collection[str] = (),
    advice: str = "Copy it again",
    sha256: str | None = None,
) -> pd.DataFrame:
    """Return the rows of a parquet file.

    Args:
        path: the file.
        types: column -> type, of those columns that must have one; a column that is not there is no error.
        complete: columns in which no value may be missing.
        advice: what to do about a damaged file.
        sha256: of the file, where it was kept when the file was written.

    Raises:
        InputError: the file is missing or damaged, is not what was written, states more rows than it can hold, unpacks
            to far more than it packs, or has a column of another type.
    """
    file = require_file(path)
    if sha256 is not None and fingerprint(file) != sha256:
        raise InputError(f"{show_path(file)} must match its SHA-256; they differ. {advice}")
    name = show_path(file)
    with reading(file, "a whole parquet file", advice), open(file, "rb") as stream:
        size = file.stat().st_size
        stored = open_parquet(stream, size, name)
        require_few_copies(stored, stream, size, name)
        columns = stored.read()
        require_different(columns.column_names, name)
        _require_letters(columns, name)
        table: pd.DataFrame = columns.to_pandas()
        require_types(table, types or {}, name)
        for column in complete:
            if column in table and bool(table[column].isna().any()):
                row = int(table[column].isna().to_numpy().argmax())
                raise InputError(f"column {column} of {name} must have a value in every row; row {row} has none")
        return table


def _require_letters(columns: Any, name: str) -> None:
    """Raise InputError for a column of Arrow with texts that are no UTF-8."""
    import pyarrow

    for column, values in zip(columns.column_names, columns.columns, strict=True):
        if is_text(values.type):
            try:
                values.validate(full=True)
            except pyarrow.ArrowInvalid as error:
                raise InputError(f"texts of column {column} of {name} must be UTF-8; they are not") from error
