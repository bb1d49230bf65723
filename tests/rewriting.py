"""What another writer can do to a file while lossscope reads it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

Writer = Callable[[Path], None]
_LATER = 10**9  # nanoseconds: the clock of a file system may stand still for milliseconds


def append(file: Path) -> None:
    """Make the file longer."""
    _write_later(file, file.read_bytes() + file.read_bytes()[-64:])


def truncate(file: Path) -> None:
    """Make the file shorter."""
    changed = file.stat().st_mtime_ns
    os.truncate(file, file.stat().st_size // 2)
    os.utime(file, ns=(changed + _LATER,) * 2)


def replace(file: Path) -> None:
    """Put another file of the same size in its place, as careful writers do."""
    other = file.with_name(f"{file.name}.new")
    other.write_bytes(_other_bytes(file))
    changed = file.stat().st_mtime_ns
    other.replace(file)
    os.utime(file, ns=(changed + _LATER,) * 2)


def rewrite(file: Path) -> None:
    """Write other bytes into the file, as many."""
    _write_later(file, _other_bytes(file))


def _other_bytes(file: Path) -> bytes:
    content = file.read_bytes()
    middle = len(content) // 2
    return content[:middle] + bytes(byte ^ 1 for byte in content[middle:])


def _write_later(file: Path, content: bytes) -> None:
    changed = file.stat().st_mtime_ns
    with open(file, "r+b") as stream:  # the same inode
        stream.write(content)
    os.utime(file, ns=(changed + _LATER,) * 2)


WRITERS: list[tuple[Writer, str]] = [
    (append, "became longer"), (truncate, "became shorter"), (replace, "was written again"),
    (rewrite, "was written again"), (Path.unlink, "was removed"),
]  # fmt: skip
"""Each with what a message says of it."""
STAYS = r"{name} must stay as it is while lossscope reads it, \d+ bytes; it {got} meanwhile.*\. Wait until"
"""The message, as a pattern."""
