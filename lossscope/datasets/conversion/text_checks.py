"""Checks of names and numbers that a conversion copies from a file of another program."""

from __future__ import annotations

from lossscope.errors import InputError
from lossscope.io.json_files import expect, shorten

_BITS = 63
_LONGEST = 200  # bytes of a file name; with the suffix of a temporary file it must fit into 255


def require_id(value: object, where: str) -> int | str:
    """Return an id, a whole number of 64 bits or a text. Raises InputError for anything else."""
    if isinstance(value, str):
        return value
    if type(value) is not int or value.bit_length() > _BITS:
        raise InputError(f"id of {where} must be a whole number of 64 bits or text; got {shorten(value)}")
    return value


def require_file_name(value: object, where: str) -> str:
    """Return the name of a file. Raises InputError for a name with folders, and for one of more than 200 bytes."""
    name = expect(value, str, where)
    if not name or name in (".", "..") or any(mark in name for mark in "/\\\0"):
        raise InputError(f"{where} must be a file's name without folders; got {name[:60]!r}")
    if len(name.encode("utf-8")) > _LONGEST:
        raise InputError(f"{where} must be of at most {_LONGEST} bytes; got {name[:60]!r} and so on")
    return name
