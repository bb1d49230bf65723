"""Stop on Ctrl-C and SIGTERM after the current step, so that no finished work is lost."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def stop_on_signals() -> Iterator[list[int]]:
    """Yield a list that receives the signal to stop; the caller finishes and saves the current step, then stops.

    A second signal raises KeyboardInterrupt at once. Outside the main thread no handler is installed, as Python does
    not allow it there.
    """
    received: list[int] = []

    def handle(number: int, _frame: Any) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(number)

    previous: dict[signal.Signals, Any] = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(ValueError):
                previous[number] = signal.signal(number, handle)
        yield received
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
