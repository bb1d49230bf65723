"""A table of numbers with a label in each row, or with an embedding of each of two sides: CSV, TSV or parquet."""

from __future__ import annotations

import contextlib
import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lossscope.errors import InputError

from .column_blocks import join_blocks
from .csv_rows import iter_csv_rows
from .parquet_tables import read_parquet
from .reading import show_path

_LABELS = ("label", "labels", "class", "target")
_NO_NUMBERS = ("", "index", "id", "item_id", "Unnamed: 0", "__index_level_0__")  # of a row, beside its embedding
_SIDES = {
    "query": ("queries", "documents"), "anchor": ("queries", "documents"), "question": ("queries", "documents"),
    "image": ("images", "captions"),
}  # fmt: skip
_SECOND = {"queries": ("document", "positive", "answer", "passage"), "images": ("caption", "text")}
_MOST = 1 << 16  # bytes of a line that is looked at
_FEWEST = 2  # columns of an embedding


def is_number_table(path: Path) -> bool:
    """Return whether a table has a label or two sides beside its numbers, as far as its first rows say."""
    with contextlib.suppress(Exception):  # of a damaged file the reader of rows says what is wrong
        if path.suffix == ".parquet" and path.is_file():
            return _is_table(*_parquet_columns(path))
        if path.suffix in (".csv", ".tsv") and path.is_file():
            with open(path, encoding="utf-8-sig", newline="") as file:
                lines = [file.readline(_MOST), file.readline(_MOST)]
            header, row = csv.reader(lines, delimiter="\t" if path.suffix == ".tsv" else ",")
            return _is_table([name for name, value in zip(header, row, strict=True) if _is_number(value)], [], header)
    return False


def read_number_table(path: Path) -> tuple[dict[str, Any], list[str]]:
    """Return the arrays of a table by the names of a dump, and which columns they are.

    Raises InputError for values that are no numbers, and lists of several lengths.
    """
    columns, name = _read_columns(path), show_path(path)
    if path.suffix == ".parquet":
        numbers, lists, _ = _parquet_columns(path)
    else:
        numbers, lists = [column for column in columns if column not in (*_LABELS, *_NO_NUMBERS)], []
    label = next((column for column in _LABELS if column in columns), None)
    if label is None:
        keys = _pair_of(lists)
        assert keys is not None
        notice = f"{name} is two sides: its {' and '.join(repr(column) for column in keys.values())}"
        return {key: _stack(columns[column], column, name) for key, column in keys.items()}, [notice]
    labels = np.asarray(columns[label])
    arrays = {"labels": labels if labels.dtype.kind in "iu" else labels.astype(str)}
    used = lists[:1] or [column for column in numbers if column not in (*_LABELS, *_NO_NUMBERS)]
    arrays["embeddings"] = (
        _stack(columns[used[0]], used[0], name)
        if lists
        else np.stack([_numbers(columns[column], column, name) for column in used], 1)
    )
    others = [column for column in columns if column not in (label, *used)]
    what = f"{used[0]!r}" if lists else f"{len(used)} columns of numbers, {used[0]!r} to {used[-1]!r}"
    left = f"; {', '.join(map(repr, others))} {'is' if len(others) == 1 else 'are'} not read" if others else ""
    return arrays, [f"{name} is a labelled set: its embedding is {what}, its class {label!r}{left}"]


def _is_table(numbers: Sequence[str], lists: Sequence[str], names: Sequence[str]) -> bool:
    """Return whether columns are an embedding with a label, or embeddings of two sides."""
    if not set(_LABELS) & set(names):
        return _pair_of(lists) is not None
    values = [name for name in numbers if name not in (*_LABELS, *_NO_NUMBERS)]
    others = set(names) - {*values, *_LABELS, *_NO_NUMBERS}
    return len(lists) == 1 or (not lists and len(values) >= _FEWEST and not others)


def _pair_of(lists: Sequence[str]) -> dict[str, str] | None:
    """Return array -> column of two columns of lists whose names are of two sides; None for others."""
    if len(lists) != 2:
        return None
    for query, document in (lists, lists[::-1]):
        keys = next((keys for word, keys in _SIDES.items() if query.lower().startswith(word)), None)
        if keys is not None and document.lower().startswith(_SECOND[keys[0]]):
            return {keys[0]: query, keys[1]: document}
    return None


def _parquet_columns(path: Path) -> tuple[list[str], list[str], list[str]]:
    """Return the names of the columns of numbers, of those of lists of numbers, and of all."""
    import pyarrow
    import pyarrow.parquet

    schema, types = pyarrow.parquet.read_schema(path), pyarrow.types
    lists = [
        item.name
        for item in schema
        if (types.is_list(item.type) or types.is_large_list(item.type) or types.is_fixed_size_list(item.type))
        and types.is_floating(item.type.value_type)
    ]
    return [item.name for item in schema if types.is_floating(item.type)], lists, schema.names


def _read_columns(path: Path) -> dict[str, Any]:
    if path.suffix == ".parquet":
        table = read_parquet(path)
        return {str(column): table[column].to_numpy() for column in table}
    block = join_blocks(iter_csv_rows(str(path), lambda _: True))
    if block is None:
        raise InputError(f"{show_path(path)} must have rows; it has none")
    return dict(block.columns)


def _numbers(values: Any, column: str, name: str) -> npt.NDArray[np.float64]:
    try:
        return np.asarray(values, np.float64)
    except ValueError as error:
        raise InputError(f"column {column!r} of {name} must be numbers; {error}") from None


def _stack(lists: Any, column: str, name: str) -> npt.NDArray[Any]:
    lengths = {len(values) if values is not None else 0 for values in lists}
    if len(lengths) != 1:
        raise InputError(f"column {column!r} of {name} must be lists of one length; got {sorted(lengths)[:4]}")
    return np.stack(list(lists))


def _is_number(value: str) -> bool:
    with contextlib.suppress(ValueError):
        float(value)
        return True
    return False
