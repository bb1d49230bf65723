"""What a process inherits: no modules of the current folder, and an end with the process that started it.

It ends even by kill -9, so that no orphan writes beside a resumed run.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

SAFE_PATH = "PYTHONSAFEPATH"  # environment: Python does not put the current folder first among the folders of modules
PARENT = "LOSSSCOPE_PARENT"  # environment: the process that a worker of a study ends with
_TORCHRUN = "TORCHELASTIC_RUN_ID"  # environment: set by torchrun, which is the parent of its processes
_WATCH = "end-with-parent"  # name of the thread


@contextlib.contextmanager
def no_modules_of_the_current_folder() -> Iterator[None]:
    """Start processes of Python without the current folder among the folders of modules, where `python -c` puts it."""
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[SAFE_PATH]
        else:
            os.environ[SAFE_PATH] = before


def end_with_parent(seconds: float = 2.0) -> None:
    """End as by SIGTERM when the process named in LOSSSCOPE_PARENT is gone, or torchrun that started this one.

    It looks every few seconds, in one thread, however often it is called. A process that a shell started is not
    watched: it may outlive its shell.
    """
    if any(thread.name == _WATCH for thread in threading.enumerate()):
        return
    named = os.environ.get(PARENT, "")
    watched = int(named) if named.isdecimal() else None
    parent = os.getppid() if _TORCHRUN in os.environ else None
    if watched is None and parent is None:
        return

    def watch() -> None:
        while (watched is None or is_alive(watched)) and parent in (None, os.getppid()):
            time.sleep(seconds)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name=_WATCH, daemon=True).start()


def is_alive(process: int) -> bool:
    """Return whether there is such a process; one that is over and not yet waited for is none."""
    try:
        os.kill(process, 0)
        state = Path(f"/proc/{process}/stat")
        return not (state.is_file() and state.read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z")
    except (ProcessLookupError, FileNotFoundError):
        return False
    except PermissionError:
        return True
