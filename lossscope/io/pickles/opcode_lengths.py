"""How many bytes has the argument of an opcode of a pickle?"""

from __future__ import annotations

import mmap
import pickletools
from collections.abc import Callable

from lossscope.errors import InputError

Bytes = bytes | mmap.mmap
Length = int | Callable[[Bytes, int], int]
"""Bytes of an argument, or the function of (content, its place) that tells them."""
_MAX_INTEGER_BYTES = 512  # 1,233 decimal digits
_MAX_NAME = 1000  # letters of a module or a name; torch searches its message for them with a slow pattern
_MAX_DIGITS = 1300  # of a number that is written as text


def read_number(content: Bytes, place: int, width: int) -> int:
    """Return the whole number >= 0 in `width` bytes."""
    return int.from_bytes(content[place : place + width], "little")


def _line(content: Bytes, place: int) -> int:
    """Return the bytes of a line, its end included. Raises IndexError when it has none."""
    end = content.find(b"\n", place)
    if end < 0:
        raise IndexError("no end of a line")
    return end + 1 - place


def _two_names(content: Bytes, place: int) -> int:
    """Return the bytes of a module and a name, a line each. Raises InputError for longer ones than Python has."""
    first = _line(content, place)
    second = _line(content, place + first)
    if max(first, second) > _MAX_NAME:
        raise InputError(f"it names a global of {first + second} letters; at most {_MAX_NAME} of each part are read")
    return first + second


def digit_bytes(content: Bytes, place: int) -> int:
    """Return the bytes of a number in text. Raises InputError when it has more than 1,300 digits."""
    length = _line(content, place)
    if length > _MAX_DIGITS:
        raise InputError(f"it holds a number of {length} digits; at most {_MAX_DIGITS} are read")
    return length


def _counted(width: int) -> Callable[[Bytes, int], int]:
    """Return a function that gives the bytes of an argument whose length precedes it in `width` bytes."""
    return lambda content, place: width + read_number(content, place, width)


def _integer(content: Bytes, place: int) -> int:
    """Return the bytes of a LONG4. Raises InputError when the integer has more than 512 bytes."""
    length = read_number(content, place, 4)
    if length > _MAX_INTEGER_BYTES:
        raise InputError(f"it holds an integer of {length} bytes; at most {_MAX_INTEGER_BYTES} are read")
    return 4 + length


def length_of(opcode: pickletools.OpcodeInfo) -> Length:
    """Return the bytes of an opcode's argument, or the function that tells them."""
    if opcode.arg is None:
        return 0
    if opcode.arg.n >= 0:
        return opcode.arg.n
    return _VARIABLE[opcode.name]


_VARIABLE: dict[str, Callable[[Bytes, int], int]] = {
    **dict.fromkeys(("INT", "LONG", "FLOAT", "GET", "PUT"), digit_bytes),
    **dict.fromkeys(("STRING", "UNICODE", "PERSID"), _line),
    **dict.fromkeys(("GLOBAL", "INST"), _two_names),
    **dict.fromkeys(("LONG1", "SHORT_BINSTRING", "SHORT_BINBYTES", "SHORT_BINUNICODE"), _counted(1)),
    **dict.fromkeys(("BINSTRING", "BINBYTES", "BINUNICODE"), _counted(4)),
    **dict.fromkeys(("BINBYTES8", "BYTEARRAY8", "BINUNICODE8"), _counted(8)),
    "LONG4": _integer,
}
