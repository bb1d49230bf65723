"""Run code when an exception ends a script, by a hook of the interpreter before the existing hook."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any

_Excepthook = Callable[[type[BaseException], BaseException, TracebackType | None], Any]


class CrashHook:
    """Call `write_after` of the owner with the exception that ends the script, then the former hook.

    It does not keep the owner alive, and removes itself when the owner is gone.
    """

    def __init__(self, owner: Any) -> None:
        self._owner = weakref.ref(owner)
        self._before: _Excepthook = sys.excepthook
        self._is_on = True
        sys.excepthook = self
        weakref.finalize(owner, self.remove).atexit = False

    def __call__(self, kind: type[BaseException], value: BaseException, traceback: TracebackType | None) -> None:
        owner = self._owner()
        try:
            if self._is_on and owner is not None:
                owner.write_after(value)
        finally:
            self._before(kind, value, traceback)

    def remove(self) -> None:
        """Stop; restore the former hook unless a later hook replaced this hook."""
        self._is_on = False
        if sys.excepthook is self:
            sys.excepthook = self._before
