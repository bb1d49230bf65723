"""What does each opcode of a pickle do to the stack and the memo, which hold sizes in place of values?"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from lossscope.errors import InputError

Bytes = bytes | mmap.mmap
ATOM = (1, 0)  # size and depth of a value without parts
MARK = None
_MAX_HASHED = 1 << 26  # values that keys, and the arguments of calls, hold together
_MAX_DIGITS = 1300  # of a number that is written as text
_MAX_DEPTH = 1000  # levels of values in values, calls included; hashing 100,000 levels would end the interpreter


class _Container(list[int]):
    """Size and depth of a value with parts, [size, depth], which later opcodes may extend."""

    __slots__ = ()


class Machine:
    """The stack and the memo of an unpickler, with the sizes of values in place of the values."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.hashed = 0

    def take(self, count: int | None) -> list[Any]:
        """Return the last `count` values, or for None those above the last mark, and take them away, that mark too.

        Raises IndexError where there are fewer, or no mark.
        """
        depth = len(self.stack) - (1 if count is None else count)
        if count is None:
            while depth >= 0 and self.stack[depth] is not MARK:
                depth -= 1
        if depth < 0:
            raise IndexError("no mark, or too few values")
        items = self.stack[depth + (count is None) :]
        del self.stack[depth:]
        return items

    def hash(self, items: Sequence[Any]) -> None:
        """Count values that are hashed. Raises InputError beyond the limit."""
        for item in items:
            self.hashed += item[0]
        if self.hashed > _MAX_HASHED:
            raise InputError(f"it hashes more than {_MAX_HASHED} values, which no data need")

    def extend(self, items: Sequence[Any]) -> None:
        """Add parts to the value on top. Raises InputError when it becomes too deep."""
        container = self.stack[-1]
        if not isinstance(container, _Container):
            return  # a value that takes no parts, as the unpickler says
        for item in items:
            container[0] += item[0]
            if item[1] >= container[1]:
                container[1] = item[1] + 1
        if container[1] > _MAX_DEPTH:
            raise InputError(f"it holds values in values, more than {_MAX_DEPTH} levels deep")


Effect = Callable[[Machine, Bytes, int], None]
"""(machine, content, place of the argument)."""


_ALL, _KEYS = slice(None), slice(None, None, 2)  # of the values that an opcode takes: those that are hashed
_Into = Literal["atom", "container", "top", "nothing"]
"""What becomes of the values that an opcode takes: one without parts, one that holds them, parts of what is on top."""


def _take(count: int | None, into: _Into, hashed: slice | None = None) -> Effect:
    """Return the effect of an opcode that takes the last `count` values, or for None those above the last mark."""

    def effect(machine: Machine, content: Bytes, offset: int) -> None:
        items = machine.take(count)
        if hashed is not None:
            machine.hash(items[hashed])
        if into == "atom":
            machine.stack.append(ATOM)
            return
        if into == "container":
            machine.stack.append(_Container([1, 1]))
        if into != "nothing":
            machine.extend(items)

    return effect


def _mark(machine: Machine, content: Bytes, offset: int) -> None:
    machine.stack.append(MARK)


def _duplicate(machine: Machine, content: Bytes, offset: int) -> None:
    machine.stack.append(machine.stack[-1])


def _memoise(machine: Machine, content: Bytes, offset: int) -> None:
    machine.memo[len(machine.memo)] = machine.stack[-1]


def _do_nothing(machine: Machine, content: Bytes, offset: int) -> None:
    """The effect of opcodes that change neither the stack nor the memo."""


def _get(width: int) -> Effect:
    """Return the effect of an opcode that pushes a memo entry, whose number has `width` bytes; 0: digits."""

    def effect(machine: Machine, content: Bytes, offset: int) -> None:
        machine.stack.append(machine.memo[_memo_number(content, offset, width)])

    return effect


def _put(width: int) -> Effect:
    """Return the effect of an opcode that keeps the value on top, at a number of `width` bytes; 0: digits."""

    def effect(machine: Machine, content: Bytes, offset: int) -> None:
        number = _memo_number(content, offset, width)
        if not 0 <= number <= len(content):  # the unpickler's memo is a list as long as its greatest number
            raise InputError(f"it numbers a value {number}, and has fewer")
        machine.memo[number] = machine.stack[-1]

    return effect


def _memo_number(content: Bytes, offset: int, width: int) -> int:
    """Return the number of a memo entry, in `width` bytes or, where that is 0, in digits. Raises IndexError."""
    if width:
        return read_number(content, offset, width)
    try:
        return int(content[offset : offset + digit_bytes(content, offset)])
    except ValueError as error:
        raise IndexError("no number") from error


def read_number(content: Bytes, offset: int, width: int) -> int:
    """Return the whole number >= 0 in `width` bytes."""
    return int.from_bytes(content[offset : offset + width], "little")


def line_bytes(content: Bytes, offset: int) -> int:
    """Return the bytes of a line, its end included. Raises IndexError when it has none."""
    end = content.find(b"\n", offset)
    if end < 0:
        raise IndexError("no end of a line")
    return end + 1 - offset


def digit_bytes(content: Bytes, offset: int) -> int:
    """Return the bytes of a number in text. Raises InputError when it has more than 1,300 digits."""
    length = line_bytes(content, offset)
    if length > _MAX_DIGITS:
        raise InputError(f"it holds a number of {length} digits; lossscope reads at most {_MAX_DIGITS}")
    return length


ATOM_OPCODES: Sequence[str] = (
    "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "STRING", "BINSTRING", "SHORT_BINSTRING",
    "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8", "NEXT_BUFFER", "NONE", "NEWTRUE", "NEWFALSE", "UNICODE",
    "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "FLOAT", "BINFLOAT", "GLOBAL", "PERSID", "EXT1", "EXT2", "EXT4",
)  # fmt: skip
EFFECTS: Mapping[str, Effect] = {
    **dict.fromkeys(("EMPTY_LIST", "EMPTY_DICT", "EMPTY_SET", "EMPTY_TUPLE"), _take(0, "container")),
    **{f"TUPLE{count}": _take(count, "container") for count in (1, 2, 3)},
    **dict.fromkeys(("TUPLE", "LIST"), _take(None, "container")),
    **dict.fromkeys(("DICT", "FROZENSET", "OBJ", "INST"), _take(None, "container", _ALL)),
    **dict.fromkeys(("REDUCE", "NEWOBJ"), _take(2, "container", _ALL)),
    "NEWOBJ_EX": _take(3, "container", _ALL),
    "APPEND": _take(1, "top"), "APPENDS": _take(None, "top"), "ADDITEMS": _take(None, "top", _ALL),
    "SETITEM": _take(2, "top", _KEYS), "SETITEMS": _take(None, "top", _KEYS), "BUILD": _take(1, "top", _ALL),
    "BINPERSID": _take(1, "atom", _ALL), "STACK_GLOBAL": _take(2, "atom"),
    "POP": _take(1, "nothing"), "POP_MARK": _take(None, "nothing"), "MARK": _mark, "DUP": _duplicate,
    "GET": _get(0), "BINGET": _get(1), "LONG_BINGET": _get(4), "PUT": _put(0), "BINPUT": _put(1),
    "LONG_BINPUT": _put(4), "MEMOIZE": _memoise,
    **dict.fromkeys(("READONLY_BUFFER", "PROTO", "FRAME", "STOP"), _do_nothing),
}  # fmt: skip
"""Opcode -> its effect, of those that do not push a value without parts."""
