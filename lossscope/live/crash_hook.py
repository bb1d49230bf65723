"""What runs when a script dies of an exception: the hook of the interpreter, put in front of the one that was there."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any

_Excepthook = Callable[[type[BaseException], BaseException, TracebackType | None], Any]


class CrashHook:
    """Calls `write_after` of its owner with the exception that ends the script, then the hook that was there before.

    It keeps the owner not alive, and takes itself away when the owner is gone.
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
        """Do nothing any more; give the former hook back where no later one stands in front."""
        self._is_on = False
        if sys.excepthook is self:
            sys.excepthook = self._before
