"""Is an empty cell of the loss a step that logged none, or a NaN? pandas writes both the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .log_table import Cells, LogTable, Rows

_FINITE = "finite"  # column of `LossScope.save`: 0 where a batch was not finite


def with_nan_losses(table: LogTable, loss: str) -> tuple[LogTable, tuple[str, ...]]:
    """Return the table with NaN in empty cells of the loss that mean NaN, and a notice.

    Such cells are in rows with `finite = 0`. Or they are at the end: at least as many in a row as from one loss to the
    next, in rows that have nothing which the last row with a loss lacks, such as results of an evaluation.

    Raises InputError for a cell of `finite` that is no number.
    """
    cells = table.cells[loss]
    if not table.has_empty_cells:
        return table, ()
    empty = np.setdiff1d(np.union1d(_not_finite(table), _trailing(table, cells.rows)), cells.rows)
    if not len(empty):
        return table, ()
    rows = np.concatenate([cells.rows, empty])
    values = [*cells.values, *(["nan"] * len(empty))]
    order = np.argsort(rows, kind="stable")
    filled = Cells(rows[order], [values[index] for index in order])
    notice = f"{loss} is empty in {len(empty)} rows that log a step, as pandas writes NaN: they count as NaN"
    return replace(table, cells={**table.cells, loss: filled}), (notice,)


def _not_finite(table: LogTable) -> Rows:
    """Return the rows with `finite = 0`."""
    if _FINITE not in table.cells:
        return np.empty(0, np.int64)
    finite = table.column(_FINITE)
    rows: Rows = finite.rows[finite.values == 0]
    return rows


def _trailing(table: LogTable, losses: Rows) -> Rows:
    """Return the rows after the last loss, if there are too many to be rows of something else.

    Args:
        table: the log.
        losses: rows that have a loss.
    """
    nothing = np.empty(0, np.int64)
    if len(losses) < 2:
        return nothing
    last, usual = losses[-1], int(np.diff(losses).max())
    has_more = np.zeros(table.length, bool)
    for cells in table.cells.values():
        if last not in cells.rows:
            has_more[cells.rows] = True
    rows = np.arange(last + 1, table.length)
    rows = rows[~has_more[rows]]
    return rows if len(rows) >= usual else nothing
