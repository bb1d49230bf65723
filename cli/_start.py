"""What holds from the first import on: where modules come from, what Ctrl-C shows, and no garbage among modules."""

from __future__ import annotations

import _thread
import contextlib
import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import NoReturn

_RECEIVED: list[int] = []  # signals of Ctrl-C


def explain_interrupt(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Write what no command caught: of Ctrl-C while modules are imported a line, of any other error its traceback.

    A module that is broken off may swallow the interrupt, and another one may fail for want of it: numpy then repeats
    itself up to the limit of recursion.
    """
    if issubclass(kind, KeyboardInterrupt):
        sys.stderr.write("Interrupted.\n")
    elif _RECEIVED:
        sys.stderr.write(f"Interrupted; what was broken off raised {kind.__name__}: {' '.join(str(error).split())}\n")
    else:
        sys.__excepthook__(kind, error, trace)


def interrupt(number: int, _frame: FrameType | None) -> NoReturn:
    """Raise KeyboardInterrupt, as Python does at Ctrl-C, and note it."""
    _RECEIVED.append(number)
    raise KeyboardInterrupt


def interrupt_again(ignored: sys.UnraisableHookArgs) -> None:
    """Interrupt once more where Ctrl-C came within a destructor, from which Python lets no error out."""
    if ignored.exc_type is KeyboardInterrupt:
        threading.Timer(0.05, _interrupt_main_thread).start()
    else:
        sys.__unraisablehook__(ignored)


def _interrupt_main_thread() -> None:
    if hasattr(signal, "pthread_kill"):  # which ends a sleep, too
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        _thread.interrupt_main()


@contextlib.contextmanager
def no_garbage() -> Iterator[None]:
    """Look for no garbage while modules are imported, nor later among what they hold.

    Python looks through all objects again and again while they grow in number, and once more at its exit: a fifth of
    the time that a command takes to start. Modules stay until then. Nothing changes where the caller looks for none.
    """
    looked = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if looked:
            gc.freeze()
            gc.enable()


def end_at_ctrl_c() -> None:
    """Let Ctrl-C end the process at once: all is done, and what runs at the exit of Python would show tracebacks."""
    if signal.getsignal(signal.SIGINT) is interrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


if not sys.flags.safe_path and sys.argv[:1] == ["-m"] and sys.path[:1] == [os.getcwd()]:
    del sys.path[0]  # `python -m` puts the current folder first, where anything may lie
if sys.excepthook is sys.__excepthook__:
    sys.excepthook = explain_interrupt
if sys.unraisablehook is sys.__unraisablehook__:
    sys.unraisablehook = interrupt_again
if (
    signal.getsignal(signal.SIGINT) is signal.default_int_handler
    and threading.current_thread() is threading.main_thread()
):
    signal.signal(signal.SIGINT, interrupt)
