"""Rows of statistics in the logs of a Hugging Face Trainer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .observed import Row

PREFIX = "lossscope/"
_NAMES = {"learning_rate": "lr", "grad_norm": "grad_norm"}  # in the logs of a Trainer -> of the field


class RowLog:
    """Adds to the logs of training what was computed since the last ones: of each statistic the newest number.

    Args:
        prefix: of the names that are logged.
    """

    def __init__(self, prefix: str = PREFIX) -> None:
        self.prefix = prefix
        self._pending: Row = {}

    def add(self, row: Row | None) -> None:
        """Keep a row for the next logs; None, of a step that was skipped, keeps nothing."""
        if row is not None:
            self._pending |= row

    def write(self, state: Any, logs: dict[str, Any] | None) -> None:
        """Add what is pending to the logs, and to the newest entry of `state.log_history`; not to an evaluation's."""
        if not self._pending or logs is None or any(name.startswith("eval_") for name in logs):
            return
        values, self._pending = with_prefix(self._pending, self.prefix), {}
        logs.update(values)
        if state.log_history:
            state.log_history[-1].update(values)


def known_numbers(logs: Mapping[str, Any] | None) -> Row:
    """Return what a Trainer logs of a step that the doctor reads: its learning rate and the norm of its gradient."""
    found = {name: (logs or {}).get(key) for key, name in _NAMES.items()}
    return {name: float(value) for name, value in found.items() if isinstance(value, int | float)}


def with_prefix(row: Row, prefix: str) -> Row:
    """Return the row under the names that are logged."""
    return {f"{prefix}{name}": value for name, value in row.items()}
