"""Which Python files may be imported: those that the user names, and no other that a checkpoint, run or study names."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from lossscope.errors import InputError

_FILE = re.compile(r'(?<![^,="])[^,="]*\.py(?=:[^\W\d])')  # from the beginning of a value: linear in the text


@dataclass(frozen=True)
class TrustedCode:
    """The Python files that may be imported."""

    files: frozenset[Path] = frozenset()  # resolved
    any_file: bool = False  # any file, as --trust-code says

    def joined(self, *others: TrustedCode) -> TrustedCode:
        """Return what this and others trust, together."""
        all_trusted = (self, *others)
        return TrustedCode(
            frozenset().union(*(trusted.files for trusted in all_trusted)),
            any(trusted.any_file for trusted in all_trusted),
        )


_NOTHING = TrustedCode()
_CURRENT: ContextVar[TrustedCode] = ContextVar("trusted_code", default=_NOTHING)


def trusted_code() -> TrustedCode:
    """Return what is trusted now, to be passed on to a process that this one starts."""
    return _CURRENT.get()


@contextlib.contextmanager
def trust(specs: Iterable[object] = (), any_file: bool = False, more: TrustedCode | None = None) -> Iterator[None]:
    """Let Python files be imported until the block ends, beside those that are trusted already.

    Call it with what the user typed or passed as an argument, never with what a file says.

    Args:
        specs: texts; the files of those that name one, `./file.py:Class`, are trusted.
        any_file: trust any file.
        more: what else is trusted: by the process that started this one, or remembered of a folder.
    """
    files = frozenset(file.resolve() for file in plugin_files(specs))
    token = _CURRENT.set(_CURRENT.get().joined(TrustedCode(files, any_file), *([more] if more else [])))
    try:
        yield
    finally:
        _CURRENT.reset(token)


def plugin_files(specs: Iterable[object]) -> list[Path]:
    """Return the Python files that specs name, as they name them, in order and once each."""
    return list(dict.fromkeys(Path(name.strip()).expanduser() for name in plugin_file_names(specs)))


def plugin_file_names(specs: Iterable[object]) -> list[str]:
    """Return the names of the Python files of specs, and of specs within them, as they are written."""
    return [match[0] for spec in specs for match in _FILE.finditer(str(spec))]


def is_trusted(spec: object) -> bool:
    """Return whether a spec names no Python file, or one that may be imported."""
    now = _CURRENT.get()
    return now.any_file or all(file.resolve() in now.files for file in plugin_files([spec]))


def require_trusted(specs: Iterable[object], named_by: object) -> None:
    """Raise InputError for the first spec whose Python file may not be imported.

    Args:
        specs: texts of a file.
        named_by: the file that they stand in, for the message.
    """
    for spec in specs:
        if not is_trusted(spec):
            raise InputError(
                f"{named_by} names the Python file of {str(spec)!r}; importing it runs it, so lossscope imports "
                "it only with --trust-code. Read it first"
            )
