"""Write a parquet file of the same rows with one column or row changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from numpy.random import Generator

from ..families import Inapplicable
from ..odd_values import draw_text

_VALUES = (float("nan"), float("inf"), -1, 10**18, None, "x", 1e308, True, b"\xff", 0.5)


def mutate(path: Path, rng: Generator) -> str:
    """Write the file anew and return what was changed."""
    try:
        table = pd.read_parquet(path)
    except Exception as error:
        raise Inapplicable("no parquet") from error
    if not len(table.columns):
        raise Inapplicable("no columns")
    column = str(table.columns[int(rng.integers(len(table.columns)))])
    name, change = list(_CHANGES.items())[rng.integers(len(_CHANGES))]
    try:
        change(table, column, rng).to_parquet(path, index=bool(rng.random() < 0.1))
    except Exception as error:
        raise Inapplicable("pandas does not write that") from error
    return f"{name}: {column}"


def _with_value(table: Any, column: str, rng: Generator) -> Any:
    values = list(table[column])
    if values:
        values[rng.integers(len(values))] = _VALUES[rng.integers(len(_VALUES))]
    return table.assign(**{column: pd.Series(values, index=table.index)})


def _foreign_texts(rows: int) -> Any:
    """Return texts whose bytes are no UTF-8, in a column of texts."""
    raw = pa.array([b"\xff\xfe"] * rows, pa.binary())
    return pd.array(pa.StringArray.from_buffers(rows, *raw.buffers()[1:]), dtype=pd.ArrowDtype(pa.string()))


_CHANGES: dict[str, Callable[[Any, str, Generator], Any]] = {
    "value": _with_value,
    "value of every row": lambda table, column, rng: table.assign(**{column: _VALUES[rng.integers(len(_VALUES))]}),
    "no column": lambda table, column, _: table.drop(columns=column),
    "renamed": lambda table, column, rng: table.rename(columns={column: draw_text(rng)[:1000]}),
    "text": lambda table, column, _: table.assign(**{column: table[column].astype(str)}),
    "odd text": lambda table, column, rng: table.assign(**{column: draw_text(rng)}),
    "no UTF-8": lambda table, column, _: table.assign(**{column: _foreign_texts(len(table))}),
    "whole numbers": lambda table, column, _: table.assign(**{column: range(len(table))}),
    "lists": lambda table, column, _: table.assign(**{column: [[1, 2]] * len(table)}),
    "objects": lambda table, column, _: table.assign(**{column: [{"a": 1}] * len(table)}),
    "missing": lambda table, column, _: table.assign(**{column: None}),
    "categories": lambda table, column, _: table.assign(**{column: table[column].astype("category")}),
    "times": lambda table, column, _: table.assign(**{column: pd.Timestamp(0)}),
    "no row": lambda table, _, rng: table.drop(index=table.index[rng.integers(max(1, len(table)))]),
    "no rows": lambda table, _, __: table.iloc[:0],
    "rows twice": lambda table, _, __: pd.concat([table, table]),
    "reversed": lambda table, _, __: table.iloc[::-1],
}
