"""What a user is told of an error, and the exit code it deserves."""

from __future__ import annotations

import typer

from lossscope.errors import InputError, Interrupted, SpecError

from . import _processes

FAILED, USAGE, INTERRUPTED = 1, 2, 130


def explain(error: BaseException) -> int:
    """Say what went wrong on stderr, and give the exit code."""
    if isinstance(error, SpecError):
        return _say(f"Error: {error}", USAGE)
    if isinstance(error, InputError):
        return _say(f"Error: {error}", FAILED)
    if isinstance(error, KeyboardInterrupt):
        return _say("Interrupted; what was finished is kept.", INTERRUPTED)
    if isinstance(error, Interrupted):
        return _say(f"Interrupted: {error}.", INTERRUPTED)
    if is_memory(error):
        return _say("Error: not enough memory; use a smaller --batch-size", FAILED)
    return _say(f"Error: {error}", FAILED)


def is_memory(error: BaseException) -> bool:
    """Whether memory ran out."""
    if not isinstance(error, MemoryError | RuntimeError):
        return False
    from lossscope.core.memory import is_out_of_memory

    return is_out_of_memory(error)


def _say(message: str, code: int) -> int:
    if code != INTERRUPTED or _processes.speaks():
        typer.echo(_processes.named(message), err=True)
    return code
