"""Read text files strictly: UTF-8, of a size that fits, without the NUL bytes of a binary file.

Every reader of text leaves out a byte order mark at the beginning, as Excel and Windows write it.
"""

from __future__ import annotations

from pathlib import Path

from lossscope.errors import InputError

from .files import require_file
from .limits import MAX_TEXT_BYTES
from .reading import reading, show_path

MARK = b"\xef\xbb\xbf"  # of byte order, at the beginning of a file
_MARK = MARK.decode()


def read_utf8(path: Path | str) -> str:
    """Return the text of a file, without a byte order mark.

    Raises InputError when it is missing, no ordinary file, larger than 256 MiB, not UTF-8, or holds a NUL byte.
    """
    with reading(path, "readable text"):
        file = require_text_file(path)
        return decode_utf8(file.read_bytes(), show_path(file))


def require_text_file(path: Path | str, most: int = MAX_TEXT_BYTES) -> Path:
    """Return the path of an ordinary file of at most `most` bytes. Raises InputError for any other."""
    file = require_file(path)
    size = file.stat().st_size
    if size > most:
        raise InputError(f"{show_path(file)} must be of at most {most} bytes; got {size}")
    return file


def decode_utf8(content: bytes, where: str) -> str:
    """Return bytes as text, without a byte order mark.

    Raises InputError, naming the place, for a byte that is no UTF-8 and for a NUL.
    """
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise InputError(f"{where} must be UTF-8 text; got a foreign byte at {problem.start}") from None
    if "\0" in text:
        raise InputError(f"{where} must be text; got a NUL byte at {content.index(0)}: it is damaged or binary")
    return text.removeprefix(_MARK)
