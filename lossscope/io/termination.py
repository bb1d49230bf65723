"""Clean up before SIGTERM ends the process, which without a handler ends it where it stands."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any


@contextlib.contextmanager
def clean_up_on_sigterm() -> Iterator[Callable[[], None]]:
    """Let SIGTERM leave the block as an exception does, so that it cleans up; the process then ends by SIGTERM.

    torchrun, for example, sends SIGTERM to the other processes as soon as one has failed. A second SIGTERM ends the
    process at once. Where the signal is handled already, as inside another such block, and outside the main thread,
    nothing changes. Yields a function that the block calls before it cleans up: a first signal that comes later waits
    until the block is left; inside another block, it breaks off the cleaning of the inner one.
    """
    received: list[int] = []
    cleaning: list[bool] = []
    process = os.getpid()

    def handle(number: int, _frame: Any) -> None:
        if received or os.getpid() != process:  # a second one, or in a fork, which has nothing to clean up
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        received.append(number)
        if not cleaning:
            raise SystemExit(128 + number)

    installed = False
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        with contextlib.suppress(ValueError):  # of another thread
            signal.signal(signal.SIGTERM, handle)
            installed = True
    try:
        yield lambda: cleaning.append(True)
    finally:
        if installed and signal.getsignal(signal.SIGTERM) is handle:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if received:
            signal.raise_signal(signal.SIGTERM)
