"""Make a CSV file ragged: cells too many or too few, columns removed, doubled, renamed or swapped, rows doubled."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from numpy.random import Generator

from ..families import Inapplicable
from ..odd_values import draw_text
from .csv_cells import read_cells, write_cells

Rows = list[list[str]]


def mutate(path: Path, rng: Generator) -> str:
    """Edit rows or columns and return how."""
    rows = read_cells(path)
    if not rows[0]:
        raise Inapplicable("no columns")
    row, column = int(rng.integers(len(rows))), int(rng.integers(len(rows[0])))
    name, action = list(_ACTIONS.items())[rng.integers(len(_ACTIONS))]
    write_cells(path, action(rows, row, column, rng))
    return f"{name}, row {row}, column {column}"


def _short(rows: Rows, row: int, column: int, _rng: Generator) -> Rows:
    return [*rows[:row], rows[row][:column], *rows[row + 1 :]]


def _long(rows: Rows, row: int, _column: int, rng: Generator) -> Rows:
    return [*rows[:row], [*rows[row], draw_text(rng)], *rows[row + 1 :]]


def _without_column(rows: Rows, _row: int, column: int, _rng: Generator) -> Rows:
    return [[*cells[:column], *cells[column + 1 :]] for cells in rows]


def _doubled_column(rows: Rows, _row: int, column: int, _rng: Generator) -> Rows:
    return [[*cells, *cells[column : column + 1]] for cells in rows]


def _rename(rows: Rows, _row: int, column: int, rng: Generator) -> Rows:
    return [[*rows[0][:column], draw_text(rng), *rows[0][column + 1 :]], *rows[1:]]


def _swap(rows: Rows, _row: int, column: int, _rng: Generator) -> Rows:
    return [[*rows[0][column:], *rows[0][:column]], *rows[1:]]


def _doubled_row(rows: Rows, row: int, _column: int, _rng: Generator) -> Rows:
    return [*rows[: row + 1], *rows[row:]]


def _without_row(rows: Rows, row: int, _column: int, _rng: Generator) -> Rows:
    return [*rows[:row], *rows[row + 1 :]]


def _only_header(rows: Rows, _row: int, _column: int, _rng: Generator) -> Rows:
    return rows[:1]


_ACTIONS: dict[str, Callable[[Rows, int, int, Generator], Rows]] = {
    "short row": _short, "long row": _long, "no column": _without_column, "column twice": _doubled_column,
    "renamed": _rename, "columns swapped": _swap, "row twice": _doubled_row, "no row": _without_row,
    "only the header": _only_header,
}  # fmt: skip
