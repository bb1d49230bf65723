"""What holds from the first import on: where modules and settings come from, what Ctrl-C shows, and no garbage."""

from __future__ import annotations

import _thread
import contextlib
import gc
import importlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import NoReturn

_RECEIVED: list[int] = []  # signals of Ctrl-C
_EPOCH, _DIGITS = "SOURCE_DATE_EPOCH", 11  # environment: the time that a build has in place of the present one


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


def import_matplotlib_elsewhere() -> None:
    """Import matplotlib in a folder without a `matplotlibrc`: it reads that of the current folder when it is imported.

    Such a file can start LaTeX with a preamble of its own; a pipe of that name would hang.
    """
    folder = os.getcwd()
    os.chdir(os.path.dirname(os.path.abspath(__file__)))
    try:
        importlib.import_module("matplotlib")
    finally:
        os.chdir(folder)


def ignore_odd_time() -> None:
    """Remove a SOURCE_DATE_EPOCH that is no time, and say so: numpy and matplotlib raise errors for it."""
    epoch = os.environ.get(_EPOCH)
    if epoch is not None and not (epoch.isascii() and epoch.isdecimal() and len(epoch) <= _DIGITS):
        del os.environ[_EPOCH]
        got = f"{epoch[:60]!a}: ignoring it, as files of lossscope have no dates"
        sys.stderr.write(f"{_EPOCH} must be a whole number of seconds of at most {_DIGITS} digits; got {got}\n")


if not sys.flags.safe_path and sys.argv[:1] == ["-m"] and sys.path[:1] == [os.getcwd()]:
    del sys.path[0]  # `python -m` puts the current folder first, where anything may lie
ignore_odd_time()
if os.path.lexists("matplotlibrc"):
    import_matplotlib_elsewhere()
if sys.excepthook is sys.__excepthook__:
    sys.excepthook = explain_interrupt
if sys.unraisablehook is sys.__unraisablehook__:
    sys.unraisablehook = interrupt_again
if (
    signal.getsignal(signal.SIGINT) is signal.default_int_handler
    and threading.current_thread() is threading.main_thread()
):
    signal.signal(signal.SIGINT, interrupt)
