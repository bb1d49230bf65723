"""Which columns of a table are numbers, and which are texts? A table of a file is checked before it is used."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Literal

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype, is_object_dtype, is_string_dtype

from lossscope.errors import InputError

ColumnType = Literal["number", "text", "curve"]
"""`curve`: an array of numbers in each row."""


def require_types(table: pd.DataFrame, types: Mapping[str, ColumnType], where: str) -> None:
    """Raise InputError for the first column that is there and of another type; empty columns are of every type.

    Args:
        table: rows of a file.
        types: column -> its type. Numbers may be missing (NaN), texts too.
        where: names the file in the message.
    """
    for name, kind in types.items():
        if name in table and not _is_of(table[name].dropna(), kind):
            raise InputError(f"column {name} of {where} must be of {kind}s; got {table[name].dtype}")


def types_of(columns: Iterable[object], texts: Collection[str]) -> dict[str, ColumnType]:
    """Return the type of each column: text of those among `texts`, curve of `curve`, number of all others."""
    return {str(name): "text" if name in texts else "curve" if name == "curve" else "number" for name in columns}


def _is_of(column: pd.Series, kind: ColumnType) -> bool:
    if column.empty:
        return True
    if kind == "number":
        return bool(is_numeric_dtype(column) and not is_bool_dtype(column) and column.dtype.kind != "c")
    if kind == "curve":
        return all(isinstance(value, np.ndarray) and value.dtype.kind in "iuf" for value in column)
    if isinstance(column.dtype, pd.CategoricalDtype):
        return all(isinstance(value, str) for value in column.cat.categories)
    return bool(is_string_dtype(column) or is_object_dtype(column)) and all(isinstance(value, str) for value in column)
