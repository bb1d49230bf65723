"""At which step of the whole training is each row? From a running step, epochs and steps in them, or epochs alone."""

from __future__ import annotations

import numpy as np

from lossscope.errors import InputError

from .log_table import Floats, LogTable


def running_steps(table: LogTable, step: str | None, epoch: str | None) -> tuple[Floats, tuple[str, ...]]:
    """Return the step of each row (length,), and notices.

    Args:
        table: the log.
        step: its column of steps, if there is one.
        epoch: its column of epochs, if there is one.

    Raises:
        InputError: a step that is below 0 or not finite.
    """
    if step is None and epoch is None:
        return np.arange(table.length, dtype=np.float64), ("the log has no steps: its rows are counted from 0",)
    if step is None or epoch is None:
        return _of_rows(table, step or epoch or ""), ()
    steps, epochs = _of_rows(table, step), np.floor(_of_rows(table, epoch))
    if not bool((np.diff(epochs)[np.diff(steps) < 0] > 0).any()):
        return steps, ()
    run = (epochs - epochs.min()) * steps_of_epoch(steps) + steps
    return run, (f"{step} begins anew in each epoch: steps are counted through",)


def steps_of_evaluations(table: LogTable, step: str | None, epoch: str | None) -> tuple[Floats, tuple[str, ...]]:
    """Return the step of each row of a file of evaluations alone, (length,), and notices.

    sentence-transformers writes step -1 at the end of an epoch, and epoch -1 outside of a training.

    Args:
        table: the file.
        step: its column of steps, if there is one.
        epoch: its column of epochs, if there is one.
    """
    if step is not None and (table.column(step).values >= 0).all():
        return running_steps(table, step, epoch)
    if epoch is not None:
        epochs = table.column(epoch).values
        if (epochs >= 0).all() and len(np.unique(epochs)) == table.length:
            return running_steps(table, None, epoch)
    return running_steps(table, None, None)


def steps_of_epoch(steps: Floats) -> float:
    """Return the number of steps of an epoch, from logged steps that count from 0 or 1 in each epoch."""
    if steps.min() > 0:
        return float(steps.max())
    return float(steps.max() + np.diff(np.unique(steps)).min(initial=steps.max() or 1.0))


def _of_rows(table: LogTable, name: str) -> Floats:
    """Return the number of each row; a row without a number takes that of the row before, the first row that after."""
    column = table.column(name)
    if len(column.rows) == 0 or not bool((np.isfinite(column.values) & (column.values >= 0)).all()):
        raise InputError(
            f"{name} of {table.name} must be finite and at least 0 in every row; it is not. Leave such rows out, or "
            "choose another: --column step=NAME"
        )
    before = np.searchsorted(column.rows, np.arange(table.length), side="right") - 1
    placed: Floats = column.values[before.clip(0)]
    return placed
