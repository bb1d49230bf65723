"""Python files that a command may import: those typed, those trusted for a folder before, and with --trust-code all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from lossscope.io.trusted_code import TrustedCode, trust


def trust_typed(given: Mapping[str, Any]) -> AbstractContextManager[None]:
    """Trust what the options of a command name, until the block ends; what files name needs --trust-code.

    A run or study that is named, or that a named checkpoint lies in, has the trust that was given when it was begun.

    Args:
        given: options of the command, by name; a default names no Python file.
    """
    from lossscope.io.remembered_trust import remembered_trust

    folders = {folder for path in _of_type(given.values(), Path) for folder in (path, *path.parents[:2])}
    before = (remembered_trust(folder) for folder in sorted(folders) if folder.is_dir())
    any_file = bool(given.get("trust_code"))
    return trust(_of_type(given.values(), str), any_file, TrustedCode().joined(*before))


def _of_type(values: Any, kind: type[Any]) -> Iterator[Any]:
    """Yield the values of a type, those in lists included."""
    for value in values:
        if isinstance(value, kind):
            yield value
        elif isinstance(value, list | tuple):
            yield from _of_type(value, kind)
