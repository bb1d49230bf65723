"""What would a pickle cost to build? Its opcodes are followed without building anything, and refused beyond limits.

Hashing a tuple walks all of it, in C and without a limit: a tuple of tuples 300,000 levels deep ends the interpreter,
and one that holds the next one twice, 60 times over, never ends. Both are seen here, before the pickle is loaded.
"""

from __future__ import annotations

import pickle
import pickletools
from collections.abc import Mapping

from .opcode_effects import ATOM_OPCODES, EFFECTS, Effect
from .opcode_lengths import Bytes, Length, length_of
from .opcode_machine import ATOM, Machine


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
    machine, size, place = Machine(), len(content), start
    stack = machine.stack
    while True:
        code = content[place]
        place += 1
        length = _LENGTHS[code]
        end = place + (length if isinstance(length, int) else length(content, place))
        if end > size:
            raise IndexError("cut off")
        effect = _EFFECTS[code]
        if effect is None:
            stack.append(ATOM)
        elif code == _STOP:
            return end
        else:
            effect(machine, content, place)
        place = end


_CODES = {opcode.name: ord(opcode.code) for opcode in pickletools.opcodes}
_STOP = _CODES["STOP"]
_LENGTHS: Mapping[int, Length] = {ord(opcode.code): length_of(opcode) for opcode in pickletools.opcodes}
_EFFECTS: Mapping[int, Effect | None] = {
    **{_CODES[name]: None for name in ATOM_OPCODES},
    **{_CODES[name]: effect for name, effect in EFFECTS.items()},
}
