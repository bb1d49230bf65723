"""Rows of a parquet file of any size, in blocks: pages with their checksums compared, columns as Python values."""

from __future__ import annotations

from collections.abc import Iterator

from .arrow_columns import arrow_column
from .column_blocks import ColumnBlock, Keep, Only, require_few_columns
from .locations import open_location, size_of
from .parquet_tables import require_size
from .reading import reading, show_path

_ROWS = 512  # of a block
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

    name, size, first = show_path(location), size_of(location), 1
    with open_location(location) as file, reading(location, "a whole parquet file"):
        options = {"page_checksum_verification": True, "pre_buffer": False, "buffer_size": _BUFFER}
        table = pyarrow.parquet.ParquetFile(file, **options)
        require_size(table.metadata, size, name)
        kept = [column for column in table.schema_arrow.names if keep(column)]
        require_few_columns(kept, name)
        for number, batch in enumerate(table.iter_batches(_ROWS, columns=kept, use_threads=False)):
            lines = range(first, first + batch.num_rows)
            first += batch.num_rows
            if only is None or number in only:
                batch.validate(full=True)
                columns = {column: arrow_column(batch.column(column), f"column {column} of {name}") for column in kept}
                done = size * lines.stop // max(1, table.metadata.num_rows)
                yield ColumnBlock(number, name, lines, columns, done, "row")
