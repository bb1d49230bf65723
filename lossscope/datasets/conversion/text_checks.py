"""Texts and numbers of a foreign file that are written on: what no other program could read is refused at once."""

from __future__ import annotations

from lossscope.errors import InputError

_BITS = 63
_LONGEST = 200  # bytes of a file's name; what is added while it is written must fit into 255


def sound(value: object, where: str) -> str:
    """The text. Raises InputError when it is none, or can not be written as UTF-8 (half of a surrogate pair)."""
    if not isinstance(value, str):
        raise InputError(f"{where} must be text; got {shown(value)}")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as problem:
        raise InputError(f"{where} must be text that UTF-8 can write; got {shown(value)}") from problem
    return value


def shown(value: object) -> str:
    """A value in a message: the beginning of it, or its type where it is too great or too deep to be written."""
    try:
        return ascii(value)[:60]
    except (ValueError, RecursionError):
        return type(value).__name__


def identity(value: object, where: str) -> int | str:
    """What something is called: a whole number of 64 bits or a text. Raises InputError for anything else."""
    if isinstance(value, str):
        return sound(value, f"id of {where}")
    if type(value) is not int or value.bit_length() > _BITS:
        raise InputError(f"id of {where} must be a whole number of 64 bits or text; got {shown(value)}")
    return value


def file_name(value: object, where: str) -> str:
    """The name of a file without folders. Raises InputError for what would lie elsewhere, or is too long for a name."""
    name = sound(value, where)
    if not name or name in (".", "..") or any(mark in name for mark in "/\\\0"):
        raise InputError(f"{where} must be a file's name without folders; got {name[:60]!r}")
    if len(name.encode("utf-8")) > _LONGEST:
        raise InputError(f"{where} must be of at most {_LONGEST} bytes; got {name[:60]!r} and so on")
    return name
