"""Wait for what another process does."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(condition: Callable[[], object], seconds: float, pause: float = 0.05) -> bool:
    """Does a condition become true in time?

    Args:
        condition: true or false each time it is called.
        seconds: longest wait.
        pause: seconds between two calls.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(pause)
    return True
