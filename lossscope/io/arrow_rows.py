"""Rows of Arrow as Python values: texts, numbers, lists of them and of passages, None where there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from lossscope.errors import InputError

from .column_blocks import ColumnBlock, Only, require_columns
from .limits import MAX_ROW_LETTERS, require_unpacked

ROWS = 512  # of a block


def iter_arrow_rows(
    batches: Iterable[Any], name: str, kept: Sequence[str], only: Only, done: Callable[[int], int]
) -> Iterator[ColumnBlock]:
    """Yield the rows of batches of Arrow in blocks.

    Args:
        batches: of one file, in its order.
        name: of the file, for messages.
        kept: the columns that are read.
        only: numbers of the blocks that are yielded; None: all.
        done: how many bytes of the file were read, by the number of rows.

    Raises:
        InputError: two columns of one name, or values of another type; pyarrow's error for damaged ones.
    """
    require_columns(kept, name)
    first, number = 1, -1
    for batch in batches:
        is_checked = False  # its columns: once, since a slice of lists has the texts of all
        for start in range(0, batch.num_rows, ROWS):
            rows = batch.slice(start, ROWS)
            lines = range(first, first + rows.num_rows)
            first, number = lines.stop, number + 1
            if only is None or number in only:
                if not is_checked:
                    _require_whole(batch, kept)
                    is_checked = True
                columns = {column: _values(rows.column(column), f"column {column} of {name}") for column in kept}
                yield ColumnBlock(number, name, lines, columns, done(lines.stop), "row")


def bound_batches(batches: Iterable[Any], size: int, name: str) -> Iterator[Any]:
    """Yield batches of Arrow. Raises InputError where their values are far more bytes than the file has.

    Args:
        batches: of one file, in its order.
        size: bytes of the file.
        name: of the file, for messages.
    """
    unpacked = 0
    for batch in batches:
        unpacked += sum(map(_decoded_bytes, batch.columns))
        require_unpacked(unpacked, size, name)
        yield batch


def _decoded_bytes(column: Any) -> int:
    """Return the bytes of an Arrow array whose rows have a copy each of what they share."""
    import pyarrow.compute

    if not pyarrow.types.is_dictionary(column.type) or not is_text(column.type.value_type):
        return int(column.nbytes)
    lengths = pyarrow.compute.binary_length(column.dictionary)
    return int(pyarrow.compute.sum(lengths.take(column.indices)).as_py() or 0)


def _require_whole(batch: Any, kept: Sequence[str]) -> None:
    """Raise pyarrow's error for a damaged column."""
    for column in kept:
        batch.column(column).validate(full=True)


def _values(column: Any, where: str) -> list[Any]:
    """Return the values of an Arrow array of texts or numbers, or of lists of texts, numbers or records of them.

    Args:
        column: the array, which `validate(full=True)` has seen; or a slice of one that it has.
        where: names column and file in messages.

    Raises:
        InputError: values of another type, texts that are no UTF-8, or one that is longer than any text.
    """
    import pyarrow

    kinds = pyarrow.types
    if kinds.is_dictionary(column.type):
        column = column.dictionary_decode()
    if kinds.is_null(column.type) or _is_number(column.type):
        return list(column.to_pylist())
    if is_text(column.type):
        return _texts(column, where)
    is_list = kinds.is_list(column.type) or kinds.is_large_list(column.type)
    items = column.type.value_type if is_list else None
    if items is not None and (is_text(items) or kinds.is_null(items)):
        return _lists(column, where)
    if items is not None and (_is_number(items) or _is_record(items)):
        return list(column.to_pylist())
    raise InputError(f"{where} must be of texts, numbers, or lists of texts or of passages; got {column.type}")


def _is_number(kind: Any) -> bool:
    import pyarrow

    return any(getattr(pyarrow.types, f"is_{name}")(kind) for name in ("integer", "floating", "boolean"))


def _is_record(kind: Any) -> bool:
    """Return whether a type of Arrow is one of records of texts and numbers, as passages are."""
    import pyarrow

    types = pyarrow.types
    return types.is_struct(kind) and all(
        is_text(item.type) or _is_number(item.type) or types.is_null(item.type) for item in kind
    )


def is_text(kind: Any) -> bool:
    """Return whether a type of Arrow is one of texts."""
    import pyarrow

    return any(getattr(pyarrow.types, f"is_{name}")(kind) for name in ("string", "large_string", "string_view"))


def _texts(column: Any, where: str) -> list[str | None]:
    import pyarrow.compute

    if pyarrow.types.is_string_view(column.type):
        column = column.cast(pyarrow.large_string())
    longest = pyarrow.compute.max(pyarrow.compute.binary_length(column)).as_py() or 0
    if longest > 4 * MAX_ROW_LETTERS:
        raise InputError(f"texts of {where} must be of at most {MAX_ROW_LETTERS} letters; one is of {longest} bytes")
    return list(column.to_numpy(zero_copy_only=False))


def _lists(column: Any, where: str) -> list[list[str | None] | None]:
    texts, offsets = _texts(column.flatten(), where), [0]
    for length in column.value_lengths().to_pylist():
        offsets.append(offsets[-1] + (length or 0))
    pieces = zip(offsets, offsets[1:], column.is_valid().to_pylist(), strict=False)
    return [texts[start:end] if valid else None for start, end, valid in pieces]
