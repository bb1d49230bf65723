"""Rows of a parquet file of any size, in blocks: pages with their checksums compared, columns as Python values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

from lossscope.errors import InputError

from .arrow_rows import ROWS, iter_arrow_rows
from .column_blocks import ColumnBlock, Keep, Only
from .locations import open_location, size_of
from .reading import reading, show_path

_BUFFER = 1 << 18  # bytes of a column that are read at a time, where a group of rows may be the whole file
_FREE_VALUES = 1 << 26  # values that a file of any size may have
_VALUES_A_BYTE = 64  # that a larger one may have, where columns repeat themselves


def iter_parquet_rows(location: str, keep: Keep, only: Only = None) -> Iterator[ColumnBlock]:
    """Yield the rows of a parquet file in blocks.

    Args:
        location: path or URL.
        keep: whether a column is read, by its name.
        only: numbers of the blocks that are yielded; None: all.

    Raises:
        InputError: the file is damaged or cut off, states more rows than it can hold, or has texts that are no UTF-8.
    """
    name, size = show_path(location), size_of(location)
    with open_location(location) as file, reading(location, "a whole parquet file"):
        table = open_parquet(file, size, name, pre_buffer=False, buffer_size=_BUFFER)
        kept, number = list(filter(keep, table.schema_arrow.names)), max(1, table.metadata.num_rows)
        batches = table.iter_batches(ROWS, columns=kept, use_threads=False)
        yield from iter_arrow_rows(batches, name, kept, only, lambda rows: size * rows // number)


def open_parquet(file: IO[bytes], size: int, name: str, **options: Any) -> Any:
    """Return the pyarrow.parquet.ParquetFile in an open file, whose pages are compared with their checksums.

    Raises InputError when it states more values than a file of its size holds.

    Args:
        file: to read.
        size: its bytes.
        name: of the file, for the message.
        options: of ParquetFile.
    """
    import pyarrow.parquet

    table = pyarrow.parquet.ParquetFile(file, page_checksum_verification=True, **options)
    values = table.metadata.num_rows * table.metadata.num_columns
    if values > _FREE_VALUES + _VALUES_A_BYTE * size:
        raise InputError(f"{name} must hold the rows that it states; it states {table.metadata.num_rows}")
    return table
