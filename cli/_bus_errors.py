"""What happens where a file that is mapped into memory becomes shorter: a message instead of the system's bus error.

Threads of torch and numpy read such memory. The system stops the process by SIGBUS there, which is no exception.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from lossscope.visible_text import show_text

from ._errors import FAILED

_MAPS = Path("/proc/self/maps")  # of Linux: a line for each part of memory, with the file that it is mapped from


@cache
def explain_bus_errors() -> Any:
    """Let SIGBUS end the process with a message and exit code 1.

    Returns the function that the system then calls, which must stay; None where SIGBUS is handled already, or unknown.
    """
    if not hasattr(signal, "SIGBUS"):  # Windows
        return None
    import ctypes

    handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(_explain)
    set_handler = ctypes.CDLL(None).signal
    set_handler.restype, set_handler.argtypes = ctypes.c_void_p, (ctypes.c_int, ctypes.c_void_p)
    before = set_handler(signal.SIGBUS, ctypes.cast(handler, ctypes.c_void_p))
    if before:  # such as faulthandler's
        set_handler(signal.SIGBUS, before)
        return None
    return handler


def _explain(_number: int) -> None:
    """Write the message and end the process, in which nothing else can go on."""
    files = ", ".join(dict.fromkeys(_shortened())) or "a file that is mapped into memory"
    text = (
        f"Error: {files} must stay as it is while lossscope reads it; it became shorter meanwhile, or its disk failed. "
        "Wait until its writer ends, then run the command again\n"
    )
    with contextlib.suppress(OSError):
        os.write(2, text.encode("utf-8", "backslashreplace"))
    os._exit(FAILED)


def _shortened() -> Iterator[str]:
    """Yield the files of data that end before their part of memory does; libraries have parts that may."""
    page, parts = os.sysconf("SC_PAGE_SIZE"), list[tuple[str, str, int]]()
    with contextlib.suppress(OSError, ValueError):
        for line in _MAPS.read_text(encoding="utf-8", errors="surrogateescape").splitlines():
            span, rights, offset, _, _, *path = line.split(maxsplit=5)
            start, end = (int(edge, 16) for edge in span.split("-"))
            parts += [(file, rights, int(offset, 16) + end - start) for file in path]
        libraries = {file for file, rights, _ in parts if "x" in rights}
        for file, _, end in parts:
            if file not in libraries and os.path.isfile(file) and -(-os.stat(file).st_size // page) * page < end:
                yield show_text(file)
