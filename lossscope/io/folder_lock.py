"""One writer of a folder at a time: a lock that ends with the process, and the name of who holds it.

The lock is the file `.lock`, held by filelock; `.lock.json` beside it names the holder. Both are removed at the end,
also by SIGTERM. Those of a killed process stay, hold nothing, and are taken over. A thread may lock a folder that it
has locked already.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import json
import os
import shlex
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import filelock

from lossscope.errors import InputError
from lossscope.visible_text import show_text

from .decode import decode
from .json_files import read_json
from .temporary_files import remove_leftovers
from .termination import clean_up_on_sigterm
from .write_errors import explain_write_errors

LOCK, HOLDER = ".lock", ".lock.json"  # names of the files in the folder
NO_LOCKS = "LOSSSCOPE_NO_LOCKS"  # environment: 1 where the file system has no locks
_PATIENCE = 1.0  # seconds that a look of another process, or the end of an earlier command, may take
_INTERVAL = 0.05  # seconds between attempts
_LONGEST = 200  # characters of a text of the holder that are shown
_WITHOUT_LOCKS = ("ENOSYS", "ENOLCK", "ENOTSUP", "EOPNOTSUPP")  # names of the errors of such a file system


@contextlib.contextmanager
def lock_folder(folder: Path | str, *below: str, wait: bool = False) -> Iterator[None]:
    """Hold the lock of a folder, which is made if it is missing; temporary files of killed writers are removed.

    A folder that was made and stays empty is removed at the end.

    Args:
        folder: that is written.
        below: names of folders in it that the same command writes.
        wait: until another process releases it; else that is an error.

    Raises:
        InputError: another process writes the folder, or its file system has no locks.
        WriteError: the folder cannot be written.
    """
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} must be a folder to write; it is a file. Choose another name")
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    with clean_up_on_sigterm() as begin_to_clean_up:
        try:
            with explain_write_errors(folder, any_name=True):
                folder.mkdir(parents=True, exist_ok=True)
            with _held(folder, below, wait, begin_to_clean_up):
                yield
        finally:
            begin_to_clean_up()
            for path in missing:
                with contextlib.suppress(OSError):
                    path.rmdir()


@contextlib.contextmanager
def lock_files(first: Path) -> Iterator[None]:
    """Hold files that a command writes together, such as weights and their .json, so that they are all its own.

    Their lock is that of a folder beside them, which goes at the end.

    Args:
        first: one of the files, which names the folder.

    Raises:
        InputError: another process writes them, or their file system has no locks.
        WriteError: they cannot be written.
    """
    folder = first.with_name(f".{first.name}.lock")
    try:
        with lock_folder(folder):
            yield
    finally:
        with contextlib.suppress(OSError):  # another process waits for it
            folder.rmdir()


def remove_stale_lock(folder: Path | str) -> None:
    """Remove what a killed process left in a folder that is complete, and which no command will lock again.

    What another process holds stays, and what cannot be removed.

    Args:
        folder: whose writer may have been killed after its last file, before it could release the lock.
    """
    if any((Path(folder) / name).exists() for name in (LOCK, HOLDER)):
        with contextlib.suppress(InputError), lock_folder(folder):
            pass


def is_locked(folder: Path | str) -> bool:
    """Return whether another process, or this one, holds the lock of a folder; False where that cannot be known."""
    path = Path(folder) / LOCK
    if not path.exists():
        return False
    lock = _lock(path)
    if lock.is_locked:
        return True
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        return True
    except OSError:  # somebody else's folder, or no locks
        return False
    lock.release()
    return False


def has_content(folder: Path | str, *but: str) -> bool:
    """Return whether there is a file, or a folder with anything in it but a lock and what `but` names."""
    folder = Path(folder)
    if not folder.is_dir():
        return folder.exists()
    return any(path.name not in (LOCK, HOLDER, *but) for path in folder.iterdir())


@contextlib.contextmanager
def _held(folder: Path, below: Sequence[str], wait: bool, begin_to_clean_up: Callable[[], None]) -> Iterator[None]:
    lock = _lock(folder / LOCK)
    if lock.is_locked or os.environ.get(NO_LOCKS) == "1":
        yield
        return
    with explain_write_errors(folder / LOCK, any_name=True):
        _acquire(lock, folder, wait)
    try:
        with explain_write_errors(folder / HOLDER, any_name=True):
            (folder / HOLDER).write_text(json.dumps(asdict(_Holder.current())) + "\n", encoding="utf-8")
            for written in (folder, *(folder / name for name in below)):
                remove_leftovers(written)
        yield
    finally:
        begin_to_clean_up()
        for name in (HOLDER, LOCK):  # while it is held, so that no other process has opened a file that goes
            with contextlib.suppress(OSError):
                (folder / name).unlink(missing_ok=True)
        lock.release()


def _acquire(lock: filelock.BaseFileLock, folder: Path, wait: bool) -> None:
    try:
        lock.acquire(timeout=-1 if wait else _PATIENCE, poll_interval=_INTERVAL)
    except filelock.Timeout:
        raise InputError(
            f"{folder} must have one writer at a time; {_Holder.describe(folder)} is writing it. Wait until "
            "it ends or stop it, or choose another folder"
        ) from None
    except (NotImplementedError, OSError) as error:
        if isinstance(error, OSError) and errno.errorcode.get(error.errno or 0) not in _WITHOUT_LOCKS:
            raise
        raise InputError(
            f"{folder} must be on a file system that has locks (flock); this one has none. Write elsewhere, or set "
            f"{NO_LOCKS}=1 and make sure that no two commands write one folder"
        ) from error


def _lock(path: Path) -> filelock.BaseFileLock:
    """The one lock of a path in this thread."""
    return filelock.FileLock(path.resolve(), is_singleton=True, fallback_to_soft=False)


@dataclass(frozen=True)
class _Holder:
    """Content of `.lock.json`: the command that writes a folder."""

    pid: int
    host: str
    command: str
    since: str  # in UTC

    @classmethod
    def current(cls) -> _Holder:
        command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])
        now = datetime.datetime.now(datetime.UTC).isoformat(sep=" ", timespec="seconds")
        return cls(os.getpid(), socket.gethostname(), command[:_LONGEST], now)

    @classmethod
    def describe(cls, folder: Path) -> str:
        """Say which command holds the lock, as far as its file tells."""
        try:
            holder = decode(cls, read_json(folder / HOLDER), str(folder / HOLDER))
        except (InputError, OSError):  # it has just begun, or just ended
            return "another one"
        command, host, since = (show_text(text[:_LONGEST]) for text in (holder.command, holder.host, holder.since))
        return f"`{command}` (process {holder.pid} on {host}, since {since})"
