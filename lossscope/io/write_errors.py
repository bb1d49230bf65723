"""Why could a file not be written? One message for a full disk, a limit, missing rights and a folder that is gone."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from lossscope.errors import InputError, WriteError

_STORAGE = ("ENOSPC", "EDQUOT", "EFBIG", "EIO", "EROFS")  # names of errors of no file but one that is written
_BY_LIBRARIES = re.compile(r"inline_container|PytorchStreamWriter|iostream error|requested and \d+ written")


@contextlib.contextmanager
def explain_write_errors(path: Path, part: Path | None = None, any_name: bool = False) -> Iterator[None]:
    """Raise WriteError, which names `path` and says what to do, for what the system or a library raises on writing.

    torch wraps the system's error into a RuntimeError, safetensors into an error of its own; numpy drops its number.

    Args:
        path: the file that is written, for the message.
        part: the temporary file that is written in its place.
        any_name: whether every error of the system is of this file; else those of other files pass.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        number = _number_of(error, {str(path), str(part or path)}, any_name)
        if number is None and not path.parent.is_dir():
            number = errno.ENOENT
        if number is None and not _is_short_write(error):
            raise
        raise WriteError(_message(path, number)) from error


def require_writable(path: Path) -> None:
    """Raise WriteError where the system lets nobody make a file or folder of that name, before the work that fills it.

    A folder that is there passes: its lock finds out.
    """
    with explain_write_errors(path, any_name=True):
        if path.is_dir():
            return
        folder = next(parent for parent in path.absolute().parents if parent.exists())
        if not os.access(folder, os.W_OK | os.X_OK):  # which some file systems answer wrongly
            tempfile.TemporaryFile(dir=folder).close()


def _number_of(error: BaseException, files: set[str], any_name: bool) -> int | None:
    """Return the system's number of a failed write: of the error, of what it was raised from, or in its text."""
    seen: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in seen:
        seen.append(current)
        if isinstance(current, OSError) and current.errno is not None:
            names = {str(name) for name in (current.filename, current.filename2) if name is not None}
            if any_name or _name(current.errno) in _STORAGE or names & files:
                return current.errno
        current = current.__cause__ or current.__context__
    match = re.search(r"\(os error (\d+)\)", str(error))  # safetensors writes this file and no other
    return int(match[1]) if match else None


def _is_short_write(error: BaseException) -> bool:
    return isinstance(error, OSError | RuntimeError) and _BY_LIBRARIES.search(str(error)) is not None


def _message(path: Path, number: int | None) -> str:
    reason = os.strerror(number).lower() if number is not None else "not all of it was written"
    return f"{path} must be written whole; got {reason!r}. {_advice(path, number)}"


def _advice(path: Path, number: int | None) -> str:
    again = "then run the command again; what was finished is kept"
    match _name(number):
        case "ENOSPC" | "EDQUOT" | None:
            return f"Make room there{_free(path.parent)}, {again}"
        case "EFBIG":
            return f"Raise the limit of file sizes (ulimit -f), {again}"
        case "EIO":
            return f"The disk failed: check it, {again}"
        case "ENOENT" if path.parent.is_dir():
            return f"Nothing can be made in {path.parent}: choose another folder"
        case "ENOENT" | "ESTALE":
            return "Its folder was removed while the command ran: put it back, or begin anew"
        case _:
            return "Choose another folder, or change its rights"


def _free(folder: Path) -> str:
    try:
        return f" ({shutil.disk_usage(folder).free / 1e6:.0f} MB are free)"
    except OSError:
        return ""


def _name(number: int | None) -> str | None:
    """Return the name of an error of the system, `ENOSPC`; not every system has all."""
    return None if number is None else errno.errorcode.get(number)
