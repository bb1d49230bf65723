"""The guard around every reader: whatever a damaged file makes a library raise becomes one message that names it."""

from __future__ import annotations

import contextlib
import errno
import re
from collections.abc import Iterator
from pathlib import Path

from lossscope.errors import InputError, Interrupted
from lossscope.visible_text import show_text

_LONGEST = 300  # letters of a library's own message


@contextlib.contextmanager
def reading(path: Path | str, what: str, advice: str = "Copy it again") -> Iterator[None]:
    """Raise InputError, naming the file, in place of any exception but those of the user and of lossscope.

    Args:
        path: the file.
        what: what it must be, such as `a whole .npy file`.
        advice: what to do about a damaged one.
    """
    try:
        yield
    except (InputError, Interrupted):
        raise
    except Exception as error:
        raise InputError(explain_failure(path, what, error, advice)) from error


@contextlib.contextmanager
def naming(path: Path | str, what: str = "readable") -> Iterator[None]:
    """Begin the message of an InputError with a file and what it must be, unless it names the file already.

    Args:
        path: the file.
        what: what it must be.
    """
    name = show_path(path)
    try:
        yield
    except InputError as error:
        reason = str(error)
        if _names(reason, name) and not reason.startswith(f"{name} must "):
            raise
        reason = f"it must {reason.removeprefix(f'{name} must ')}" if reason.startswith(f"{name} must ") else reason
        raise InputError(f"{name} must be {what}; {reason}") from error


def _names(message: str, name: str) -> bool:
    """Return whether a message names a file, or one in the folder of that name."""
    return bool(re.search(rf"(?<![\w./-]){re.escape(name)}(?![\w-])", message))


def explain_failure(path: Path | str, what: str, error: Exception, advice: str) -> str:
    """Return the message for an exception that a reader met: too little memory, no permission, or a damaged file."""
    name = show_path(path)
    if lacks_memory(error):
        return f"{name} must fit into memory while it is read; there is too little. Free some, or use another machine"
    if isinstance(error, OSError) and error.strerror:
        return f"{name} must be a readable file; got {error.strerror}: check the path"
    if isinstance(error, RecursionError):
        return f"{name} must be {what}; it is nested too deep. {advice}"
    got = f"{type(error).__name__}: {shorten_message(error)}"
    return f"{name} must be {what}; got {got}. {advice}; --debug shows where it was met"


def shorten_message(error: BaseException) -> str:
    """Return what an exception of a library says, in one line of at most 300 letters."""
    return show_text(" ".join(str(error).split())[:_LONGEST]) or "no reason"


def lacks_memory(error: BaseException) -> bool:
    """Return whether an exception says that memory ran out: Python's own, the system's, or that of a library."""
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return True
    words = ("out of memory", "not enough memory", "allocate memory")
    return isinstance(error, RuntimeError) and any(word in str(error).lower() for word in words)


def show_path(path: Path | str) -> str:
    """Return a path as text that any terminal and file can hold: what cannot be printed is written as \\xNN."""
    return show_text(str(path))
