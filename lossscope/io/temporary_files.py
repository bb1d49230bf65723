"""The temporary files `.NAME.RANDOM.part` of writers: made, synced, and removed when the writer was killed.

A writer holds a lock of the system on its file, which ends with the process: one that nobody holds is a leftover.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

if sys.platform != "win32":
    import fcntl

_LEFTOVER = re.compile(r"\..+\.[a-z0-9_]{8}\.part", re.DOTALL)


@contextlib.contextmanager
def temporary_file(path: Path) -> Iterator[Path]:
    """Yield a new file beside `path`, which is removed at the end unless it was renamed; raises OSError.

    Missing parent folders are made, and what killed writers of the same file left is removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for leftover in path.parent.glob(f".{_escape(path.name)}.*.part"):
        _remove_unless_held(leftover)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        while not _hold(handle):  # removed by another process before it was held
            os.close(handle)
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
        yield Path(name)
    finally:
        os.close(handle)
        Path(name).unlink(missing_ok=True)


def remove_leftovers(folder: Path) -> list[Path]:
    """Remove the temporary files that killed writers left in a folder, not those below it; return them."""
    return [path for path in sorted(folder.glob(".*.part")) if _remove_unless_held(path)]


def reserve(path: Path) -> None:
    """Take the blocks of a file that has only a size, before it is mapped into memory.

    On a full disk this raises OSError, where a write to the mapped file would kill the process.
    """
    if sys.platform == "linux":
        with open(path, "r+b") as file:
            os.posix_fallocate(file.fileno(), 0, max(path.stat().st_size, 1))


def sync_file(path: Path) -> None:
    """Wait until the content of a file is on the disk."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Wait until the names of a folder are on the disk."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _hold(handle: int) -> bool:
    """Lock a file of our own; False when it was removed meanwhile. Without locks of the system it counts as held."""
    if sys.platform == "win32":  # an open file cannot be removed there
        return True
    with contextlib.suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_EX)
    return os.fstat(handle).st_nlink > 0


def _remove_unless_held(path: Path) -> bool:
    """Remove a leftover; False where a writer holds it, or the system has no locks and it cannot be known."""
    if not _LEFTOVER.fullmatch(path.name) or not path.is_file():
        return False
    try:
        handle = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError:  # gone, or somebody else's
        return False
    try:
        if sys.platform != "win32":
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink(missing_ok=True)
    except OSError:
        return False
    finally:
        os.close(handle)
    if sys.platform == "win32":
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
    return not path.exists()


def _escape(name: str) -> str:
    return re.sub(r"([*?[])", r"[\1]", name)
