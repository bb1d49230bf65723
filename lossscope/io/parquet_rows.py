"""Rows of a parquet file of any size, in blocks: pages with their checksums compared, columns as Python values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO, Any

from lossscope.errors import InputError

from .arrow_rows import ROWS, bound_batches, is_text, iter_arrow_rows
from .column_blocks import ColumnBlock, Keep, Only
from .limits import FREE_BYTES
from .locations import open_location, size_of
from .reading import reading, show_path

_BUFFER = 1 << 18  # bytes of a column that are read at a time, where a group of rows may be the whole file
_FREE_VALUES = 1 << 26  # values that a file of any size may have
_VALUES_A_BYTE = 64  # that a larger one may have, where columns repeat themselves
_LARGE_DICTIONARY = 1 << 22  # bytes of texts that rows share; writers end a dictionary at 1 MiB
_FEW_ROWS = 4  # that are decoded at a time where a dictionary is larger
_HEADER = 32  # bytes that hold the kind of a page and its size
_TEXTS = ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
_DICTIONARY = 2  # kind of a page


def iter_parquet_rows(location: str, keep: Keep, only: Only = None) -> Iterator[ColumnBlock]:
    """Yield the rows of a parquet file in blocks.

    Args:
        location: path or URL.
        keep: whether a column is read, by its name.
        only: numbers of the blocks that are yielded; None: all.

    Raises:
        InputError: the file is damaged or cut off, states more rows than it can hold, unpacks to far more than it
            packs, or has texts that are no UTF-8.
    """
    name, size = show_path(location), size_of(location)
    with open_location(location) as file, reading(location, "a whole parquet file"):
        table = open_parquet(file, size, name, pre_buffer=False, buffer_size=_BUFFER)
        kept, number = list(filter(keep, table.schema_arrow.names)), max(1, table.metadata.num_rows)
        batches = _join(_bounded_batches(table, file, size, name, kept))
        yield from iter_arrow_rows(batches, name, kept, only, lambda rows: size * rows // number)


def require_few_copies(table: Any, file: IO[bytes], size: int, name: str) -> None:
    """Raise InputError where rows of a file have so many copies of shared texts that they unpack to far more than it.

    Args:
        table: as open_parquet returns it.
        file: that it reads.
        size: its bytes.
        name: of the file, for the message.
    """
    if _largest_dictionary(table, file) * table.metadata.num_rows > FREE_BYTES:
        texts = [item.name for item in table.schema_arrow if is_text(item.type) or str(item.type).startswith("dict")]
        for _ in _bounded_batches(table, file, size, name, texts):
            pass


def _bounded_batches(table: Any, file: IO[bytes], size: int, name: str, columns: Sequence[str]) -> Iterator[Any]:
    """Yield batches of 512 rows, or of a few where they share long texts. Raises InputError as bound_batches does."""
    rows = _FEW_ROWS if _largest_dictionary(table, file) > _LARGE_DICTIONARY else ROWS
    return bound_batches(table.iter_batches(rows, columns=columns, use_threads=False), size, name)


def _join(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield batches of 512 rows, as reading so many at a time does."""
    import pyarrow

    parts: list[Any] = []
    for batch in batches:
        parts.append(batch)
        if sum(part.num_rows for part in parts) >= ROWS:
            yield pyarrow.concat_batches(parts) if len(parts) > 1 else batch
            parts = []
    if parts:
        yield pyarrow.concat_batches(parts)


def _largest_dictionary(table: Any, file: IO[bytes]) -> int:
    """Return the bytes of the largest dictionary of texts; rows of a few bytes share it, and become as large each."""
    position, largest = file.tell(), 0
    for group in range(table.metadata.num_row_groups):
        for column in map(table.metadata.row_group(group).column, range(table.metadata.num_columns)):
            if column.physical_type in _TEXTS:
                starts = (column.dictionary_page_offset, column.data_page_offset)
                file.seek(min(start for start in starts if start is not None))
                largest = max(largest, _bytes_of_dictionary(file.read(_HEADER)))
    file.seek(position)
    return largest


def _bytes_of_dictionary(header: bytes) -> int:
    """Return the bytes of a page after unpacking, 0 of one of rows; of a header in another form as many as it may have.

    The header begins with two fields of whole numbers: 0x15, the kind of the page, 0x15, its bytes.
    """
    numbers, rest = list[int](), header
    while len(numbers) < 2:
        end = next((index for index, byte in enumerate(rest[1:], 1) if byte < 0x80), 0)
        if not end or rest[0] != 0x15:
            return _LARGE_DICTIONARY + 1
        numbers.append(sum((byte & 0x7F) << 7 * index for index, byte in enumerate(rest[1 : end + 1])) >> 1)
        rest = rest[end + 1 :]
    return numbers[1] if numbers[0] == _DICTIONARY else 0


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
    groups = map(table.metadata.row_group, range(table.metadata.num_row_groups))
    stated = sum(group.column(index).num_values for group in groups for index in range(group.num_columns))
    values = max(table.metadata.num_rows * table.metadata.num_columns, stated)
    if values > _FREE_VALUES + _VALUES_A_BYTE * size:
        raise InputError(f"{name} must hold the rows that it states; it states {table.metadata.num_rows}")
    return table
