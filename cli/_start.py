"""What holds from the first import on: modules come from where they are installed, and Ctrl-C ends in one word."""

from __future__ import annotations

import os
import sys
from types import TracebackType


def explain_interrupt(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Write what no command caught: of Ctrl-C while modules are imported a word, of any other error its traceback."""
    if issubclass(kind, KeyboardInterrupt):
        sys.stderr.write("Interrupted.\n")
    else:
        sys.__excepthook__(kind, error, trace)


if not sys.flags.safe_path and sys.argv[:1] == ["-m"] and sys.path[:1] == [os.getcwd()]:
    del sys.path[0]  # `python -m` puts the current folder first, where anything may lie
if sys.excepthook is sys.__excepthook__:
    sys.excepthook = explain_interrupt
