"""The command that runs: which of its options were typed, and does it say only what must be said?"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Running:
    """What is known of the command that runs, in all that it calls."""

    typed: frozenset[str] = frozenset()  # names of the options that were typed
    quiet: bool = False  # no progress and no notices
    verbose: bool = False  # more on stderr


_RUNNING: ContextVar[Running] = ContextVar("running", default=Running())  # noqa: B039 - never changed


def remember(context: Any) -> None:
    """Remember a command whose arguments are parsed.

    Args:
        context: click's.
    """
    typed = (name for name in context.params if context.get_parameter_source(name).name == "COMMANDLINE")
    values = context.params
    _RUNNING.set(Running(frozenset(typed), bool(values.get("quiet")), bool(values.get("verbose"))))


@contextlib.contextmanager
def until_its_end() -> Iterator[None]:
    """Forget the command at the end of the block."""
    try:
        yield
    finally:
        _RUNNING.set(Running())


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """Let the command give no notices in the block, as if --quiet were typed."""
    before = _RUNNING.get()
    _RUNNING.set(replace(before, quiet=True))
    try:
        yield
    finally:
        _RUNNING.set(before)


def is_typed(name: str) -> bool:
    """Was an option of the running command typed, rather than left at its default?"""
    return name in _RUNNING.get().typed


def is_quiet() -> bool:
    """Was --quiet typed?"""
    return _RUNNING.get().quiet


def is_verbose() -> bool:
    """Was --verbose typed?"""
    return _RUNNING.get().verbose
