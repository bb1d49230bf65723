"""Python files that a command may import: those that were typed, and with --trust-code every one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

from lossscope.io.trusted_code import trust


def trust_typed(given: Mapping[str, Any]) -> AbstractContextManager[None]:
    """Trust what the options of a command name, until the block ends; what files name needs --trust-code.

    Args:
        given: options of the command, by name; a default names no Python file.
    """
    return trust(_texts(given.values()), every=bool(given.get("trust_code")))


def _texts(values: Any) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, list | tuple):
            yield from _texts(value)
