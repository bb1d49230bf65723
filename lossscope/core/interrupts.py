"""Being asked to stop: Ctrl-C and SIGTERM end work after the step under way, so that nothing finished is lost."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def stop_on_signals() -> Iterator[list[int]]:
    """A list that gets the signal when one asks to stop: the step under way is finished and kept first.

    A second signal stops at once. Outside the main thread signals are not ours to handle.
    """
    asked: list[int] = []

    def ask(number: int, _frame: Any) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)

    before: dict[signal.Signals, Any] = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(ValueError):
                before[number] = signal.signal(number, ask)
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
