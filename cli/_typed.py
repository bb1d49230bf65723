"""Which options of the running command were typed, and which have their default?"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

_TYPED: ContextVar[frozenset[str]] = ContextVar("typed", default=frozenset())


def remember_typed(context: Any) -> None:
    """Remember the options that were typed.

    Args:
        context: click's, of a command whose arguments are parsed.
    """
    names = (name for name in context.params if context.get_parameter_source(name).name == "COMMANDLINE")
    _TYPED.set(frozenset(names))


def is_typed(name: str) -> bool:
    """Was an option of the running command typed, rather than left at its default?"""
    return name in _TYPED.get()
