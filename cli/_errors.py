"""The message of an error, and the exit code that it ends with."""

from __future__ import annotations

from lossscope.errors import InputError, Interrupted, SpecError

from . import _processes
from ._output import message

FAILED, USAGE, INTERRUPTED = 1, 2, 130
FOUND = 3  # something was found that --fail-on or --stop-on names


def explain(error: BaseException, interrupted: str = "Interrupted.") -> int:
    """Write on stderr what went wrong; return the exit code.

    Args:
        error: that ended the command.
        interrupted: the message after Ctrl-C.
    """
    if isinstance(error, SpecError):
        return _write(f"Error: {error}", USAGE)
    if isinstance(error, InputError):
        return _write(f"Error: {error}", FAILED)
    if isinstance(error, KeyboardInterrupt):
        return _write(interrupted, INTERRUPTED)
    if isinstance(error, Interrupted):
        return _write(f"Interrupted: {error}.", INTERRUPTED)
    if is_memory(error):
        return _write("Error: not enough memory; use a smaller --batch-size", FAILED)
    return _write(f"Error: {error}", FAILED)


def is_memory(error: BaseException) -> bool:
    """Return whether memory ran out."""
    if not isinstance(error, MemoryError | RuntimeError):
        return False
    from lossscope.core.memory import is_out_of_memory

    return is_out_of_memory(error)


def _write(text: str, code: int) -> int:
    if code != INTERRUPTED or _processes.writes_results():
        message(_processes.with_rank(text))
    return code
