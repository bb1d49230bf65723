"""Is a file still what it was when lossscope first read it? Its size and the time of its last change say so."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from lossscope.errors import InputError

from .files import require_file
from .reading import show_path

_MAPPED: ContextVar[list[FileState] | None] = ContextVar("mapped", default=None)


@dataclass(frozen=True)
class FileState:
    """Size and time of the last change of a file."""

    path: Path
    inode: int  # a file that takes its place has another one
    size: int  # bytes
    changed: int  # nanoseconds since 1970

    @classmethod
    def of(cls, path: Path | str) -> FileState:
        """Return the state of a file. Raises InputError when it is missing or no ordinary file."""
        file = require_file(path)
        about = file.stat()
        return cls(file, about.st_ino, about.st_size, about.st_mtime_ns)

    def require_same(self) -> None:
        """Raise InputError when a writer changed, replaced or removed the file, for readers that open it again."""
        now = self._now()
        if now is None or (now.size, now.changed) != (self.size, self.changed):
            raise self._changed(now)

    @property
    def is_rewritten(self) -> bool:
        """Whether the bytes that were opened changed in place: those of a file that was replaced or removed did not."""
        now = self._now()
        return now is not None and now.inode == self.inode and now != self

    def require_not_rewritten(self) -> None:
        """Raise InputError when the bytes changed in place, for readers that mapped them into memory."""
        if self.is_rewritten:
            raise self._changed(self._now())

    def _now(self) -> FileState | None:
        """Return the state of the file at the path; None where none is there."""
        try:
            return FileState.of(self.path)
        except InputError:
            return None

    def _changed(self, now: FileState | None) -> InputError:
        if now is None:
            got = "it was removed meanwhile"
        elif now.size != self.size:
            got = f"it became {'shorter' if now.size < self.size else 'longer'} meanwhile, {now.size} bytes"
        else:
            got = "it was written again meanwhile"
        return InputError(
            f"{show_path(self.path)} must stay as it is while lossscope reads it, {self.size} bytes; {got}. Wait until "
            "its writer ends, then run the command again"
        )


def unchanged(*paths: Path | str) -> contextlib.AbstractContextManager[None]:
    """Raise InputError when a file changes within the block, also in place of the error that it then has."""
    return unchanged_since(*map(FileState.of, paths))


@contextlib.contextmanager
def unchanged_since(*states: FileState) -> Iterator[None]:
    """Raise InputError, before or after the block or in place of its error, when a file is in another state."""
    _require_all(states)
    try:
        yield
    except InputError:
        _require_all(states)
        raise
    _require_all(states)


@contextlib.contextmanager
def watch_mapped_files() -> Iterator[None]:
    """Raise InputError at the end of the block when a file that was mapped into memory in it was rewritten."""
    states: list[FileState] = []
    token = _MAPPED.set(states)
    try:
        yield
        for state in states:
            state.require_not_rewritten()
    finally:
        _MAPPED.reset(token)


def note_mapped(state: FileState) -> None:
    """Note a file that is mapped into memory, for the block of `watch_mapped_files`."""
    states = _MAPPED.get()
    if states is not None:
        states.append(state)


@contextlib.contextmanager
def not_rewritten(*states: FileState) -> Iterator[None]:
    """Raise InputError after the block when the bytes of a file, which may be mapped into memory, changed in place."""
    yield
    for state in states:
        state.require_not_rewritten()


def _require_all(states: Sequence[FileState]) -> None:
    for state in states:
        state.require_same()
