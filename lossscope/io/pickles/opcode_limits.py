"""What would a pickle cost to build? Its opcodes are followed without building anything, and refused beyond limits.

Hashing a tuple walks all of it, in C and without a limit: a tuple of tuples 300,000 levels deep ends the interpreter,
and one that holds the next one twice, 60 times over, never ends. Both are seen here, before the pickle is loaded.
"""

from __future__ import annotations

import pickle
import pickletools
from collections.abc import Callable, Mapping

from lossscope.errors import InputError

from .opcode_effects import ATOM, ATOM_OPCODES, EFFECTS, Bytes, Effect, Machine, digit_bytes, line_bytes, read_number

Length = int | Callable[[Bytes, int], int]
"""Bytes of an argument, or the function of (content, its place) that tells them."""
_MAX_INTEGER_BYTES = 512  # 1,233 decimal digits
_MAX_NAME = 1000  # letters of a module or a name; torch searches its message for them with a slow pattern


def require_buildable(content: Bytes, start: int = 0) -> int:
    """Return the end of the pickle that begins at a byte of `content`.

    Raises:
        InputError: it is nested more than 1,000 levels deep, hashes more than 2^26 values, or has integers of more than
            512 bytes or 1,300 digits.
        UnpicklingError: it is cut off or damaged.
    """
    try:
        return _follow(content, start)
    except (IndexError, KeyError, TypeError) as error:
        raise pickle.UnpicklingError("it is cut off or damaged") from error


def _follow(content: Bytes, start: int) -> int:
    """Return the end of a pickle; a damaged one raises IndexError, KeyError or TypeError."""
    machine, size, offset = Machine(), len(content), start
    stack = machine.stack
    while True:
        code = content[offset]
        offset += 1
        length = _LENGTHS[code]
        end = offset + (length if isinstance(length, int) else length(content, offset))
        if end > size:
            raise IndexError("cut off")
        effect = _EFFECTS[code]
        if effect is None:
            stack.append(ATOM)
        elif code == _STOP:
            return end
        else:
            effect(machine, content, offset)
        offset = end


def _two_names(content: Bytes, offset: int) -> int:
    """Return the bytes of a module and a name, a line each. Raises InputError for longer ones than Python has."""
    first = line_bytes(content, offset)
    second = line_bytes(content, offset + first)
    if max(first, second) > _MAX_NAME:
        raise InputError(
            f"it names a global of {first + second} letters; lossscope reads at most {_MAX_NAME} of each part"
        )
    return first + second


def _counted(width: int) -> Callable[[Bytes, int], int]:
    """Return a function that gives the bytes of an argument whose length precedes it in `width` bytes."""
    return lambda content, offset: width + read_number(content, offset, width)


def _integer(content: Bytes, offset: int) -> int:
    """Return the bytes of a LONG4. Raises InputError when the integer has more than 512 bytes."""
    length = read_number(content, offset, 4)
    if length > _MAX_INTEGER_BYTES:
        raise InputError(f"it holds an integer of {length} bytes; lossscope reads at most {_MAX_INTEGER_BYTES}")
    return 4 + length


def _length_of(opcode: pickletools.OpcodeInfo) -> Length:
    """Return the bytes of an opcode's argument, or the function that tells them."""
    if opcode.arg is None:
        return 0
    if opcode.arg.n >= 0:
        return opcode.arg.n
    return _VARIABLE[opcode.name]


_VARIABLE: dict[str, Callable[[Bytes, int], int]] = {
    **dict.fromkeys(("INT", "LONG", "FLOAT", "GET", "PUT"), digit_bytes),
    **dict.fromkeys(("STRING", "UNICODE", "PERSID"), line_bytes),
    **dict.fromkeys(("GLOBAL", "INST"), _two_names),
    **dict.fromkeys(("LONG1", "SHORT_BINSTRING", "SHORT_BINBYTES", "SHORT_BINUNICODE"), _counted(1)),
    **dict.fromkeys(("BINSTRING", "BINBYTES", "BINUNICODE"), _counted(4)),
    **dict.fromkeys(("BINBYTES8", "BYTEARRAY8", "BINUNICODE8"), _counted(8)),
    "LONG4": _integer,
}
_CODES = {opcode.name: ord(opcode.code) for opcode in pickletools.opcodes}
_STOP = _CODES["STOP"]
_LENGTHS: Mapping[int, Length] = {ord(opcode.code): _length_of(opcode) for opcode in pickletools.opcodes}
_EFFECTS: Mapping[int, Effect | None] = {
    **{_CODES[name]: None for name in ATOM_OPCODES},
    **{_CODES[name]: effect for name, effect in EFFECTS.items()},
}
