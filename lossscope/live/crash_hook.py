"""What runs when a script dies of an exception: the hook of the interpreter, put in front of the one that was there."""

from __future__ import annotations

import logging
import sys
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any

LOGGER = logging.getLogger("lossscope")
INTENDED = (KeyboardInterrupt, SystemExit, GeneratorExit)  # ends that somebody wanted
OnCrash = Callable[[Any, BaseException], object]
_Excepthook = Callable[[type[BaseException], BaseException, TracebackType | None], Any]


class CrashHook:
    """Calls `on_crash` of its owner with the exception that ends the script, then the hook that was there before.

    It keeps the owner not alive, and takes itself away when the owner is gone.

    Args:
        owner: what is watched over.
        on_crash: called with the owner and the exception.
    """

    def __init__(self, owner: Any, on_crash: OnCrash) -> None:
        self._owner, self._on_crash = weakref.ref(owner), on_crash
        self._before: _Excepthook = sys.excepthook
        self._is_on = True
        sys.excepthook = self
        weakref.finalize(owner, self.remove).atexit = False

    def __call__(self, kind: type[BaseException], value: BaseException, traceback: TracebackType | None) -> None:
        owner = self._owner()
        try:
            if self._is_on and owner is not None:
                tell_crash(self._on_crash, owner, value)
        finally:
            self._before(kind, value, traceback)

    def remove(self) -> None:
        """Do nothing any more; give the former hook back where no later one stands in front."""
        self._is_on = False
        if sys.excepthook is self:
            sys.excepthook = self._before


def tell_crash(on_crash: OnCrash, owner: Any, error: BaseException) -> None:
    """Call on_crash(owner, error) for an end that nobody wanted; its own failure is logged and hides no error."""
    if isinstance(error, INTENDED):
        return
    try:
        on_crash(owner, error)
    except Exception:
        LOGGER.exception("what was kept could not be written after %s, which follows", type(error).__name__)
