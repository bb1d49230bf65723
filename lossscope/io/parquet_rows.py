"""Rows of a parquet file of any size, in blocks: pages with their checksums compared, columns as Python values."""

from __future__ import annotations

from collections.abc import Iterator

from .arrow_rows import ROWS, iter_arrow_rows
from .column_blocks import ColumnBlock, Keep, Only
from .locations import open_location, size_of
from .parquet_tables import require_size
from .reading import reading, show_path

_BUFFER = 1 << 18  # bytes of a column that are read at a time, where a group of rows may be the whole file


def iter_parquet_rows(location: str, keep: Keep, only: Only = None) -> Iterator[ColumnBlock]:
    """Yield the rows of a parquet file in blocks.

    Args:
        location: path or URL.
        keep: whether a column is read, by its name.
        only: numbers of the blocks that are yielded; None: all.

    Raises:
        InputError: the file is damaged or cut off, states more rows than it can hold, or has texts that are no UTF-8.
    """
    import pyarrow.parquet

    name, size = show_path(location), size_of(location)
    with open_location(location) as file, reading(location, "a whole parquet file"):
        options = {"page_checksum_verification": True, "pre_buffer": False, "buffer_size": _BUFFER}
        table = pyarrow.parquet.ParquetFile(file, **options)
        require_size(table.metadata, size, name)
        kept, number = list(filter(keep, table.schema_arrow.names)), max(1, table.metadata.num_rows)
        batches = table.iter_batches(ROWS, columns=kept, use_threads=False)
        yield from iter_arrow_rows(batches, name, kept, only, lambda rows: size * rows // number)
