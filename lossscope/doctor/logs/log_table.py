"""Hold the rows of a log under the names of its file; an empty cell differs from a cell with nan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lossscope.errors import InputError
from lossscope.io.json_files import shorten

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]
_ABSENT = frozenset({"", "none", "null", "na", "n/a", "<na>", "-"})


@dataclass(frozen=True)
class Cells:
    """The cells of a column that are not empty, unchanged."""

    rows: Rows  # (n,) their rows, ascending
    values: Sequence[object]  # (n,) texts or numbers


@dataclass(frozen=True)
class Column:
    """The numbers of a column."""

    rows: Rows  # (n,) their rows, ascending
    values: Floats  # (n,) NaN where the log says nan


@dataclass(frozen=True)
class LogTable:
    """Rows of a file, in its order; a column is parsed when it is read."""

    name: str  # of the file, for messages
    length: int  # number of rows
    cells: Mapping[str, Cells]  # name in the file -> cells, of columns that are not empty
    where: Callable[[int], str]  # of a row, for messages: `line 7`
    has_empty_cells: bool = False  # whether the file has a cell for each row and column: then NaN may be an empty cell

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns that are not empty."""
        return tuple(self.cells)

    def column(self, name: str) -> Column:
        """Return the numbers of a column. Raises InputError for a cell that is no number, by its line and column."""
        cells = self.cells[name]
        values = [self._number(cell, int(row), name) for row, cell in zip(cells.rows, cells.values, strict=True)]
        return Column(cells.rows, np.array(values, np.float64))

    def _number(self, cell: object, row: int, name: str) -> float:
        if isinstance(cell, int | float | str) and not isinstance(cell, bool) and "_" not in str(cell):
            try:
                return float(cell)
            except (ValueError, OverflowError):
                pass
        raise InputError(
            f"{name} in {self.where(row)} of {self.name} must be a number, nan, inf or empty; got {shorten(cell)}. "
            "Correct the log there, or choose another column with --column"
        )


def table_of_records(
    records: Iterable[Mapping[str, object]], name: str, where: Callable[[int], str] = lambda row: f"row {row + 1}"
) -> LogTable:
    """Return the table of records: a row each, with a cell for each key whose value is not absent.

    Args:
        records: name in the file -> text or number.
        name: of the file.
        where: of a row, for messages.
    """
    rows: dict[str, list[int]] = {}
    values: dict[str, list[object]] = {}
    length = 0
    for length, record in enumerate(records, 1):
        for key, value in record.items():
            if not is_absent(value):
                rows.setdefault(key, []).append(length - 1)
                values.setdefault(key, []).append(value)
    cells = {key: Cells(np.array(rows[key], np.int64), values[key]) for key in rows}
    return LogTable(name, length, cells, where)


def is_absent(cell: object) -> bool:
    """Return whether a cell is empty or a word for no value: `None`, `null`, `NA`."""
    return cell is None or (isinstance(cell, str) and cell.strip().lower() in _ABSENT)
