"""What does each opcode of a pickle do to the stack and the memo, which hold sizes in place of values?"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

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

    def pop_to_mark(self) -> list[Any]:
        """Return what lies above the last mark, and take both away. Raises IndexError without a mark."""
        place = len(self.stack) - 1
        while self.stack[place] is not MARK:
            place -= 1
            if place < 0:
                raise IndexError("no mark")
        items = self.stack[place + 1 :]
        del self.stack[place:]
        return items

    def hash(self, items: Sequence[Any]) -> None:
        """Count values that are hashed. Raises InputError beyond the limit."""
        for item in items:
            self.hashed += item[0]
        if self.hashed > _MAX_HASHED:
            raise InputError(f"it hashes more than {_MAX_HASHED} values, which no data need")

    def push(self, items: Sequence[Any]) -> None:
        """Push a container of parts. Raises InputError when it is nested too deep."""
        self.stack.append(_Container([1, 1]))
        self.extend(items)

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


def _push_tuple(count: int) -> Effect:
    """Return the effect of an opcode that makes a tuple of the last `count` values."""

    def effect(machine: Machine, content: Bytes, place: int) -> None:
        items = [machine.stack.pop() for _ in range(count)]
        machine.push(items)

    return effect


def _push_marked(machine: Machine, content: Bytes, place: int) -> None:
    machine.push(machine.pop_to_mark())


def _push_hashed(machine: Machine, content: Bytes, place: int) -> None:
    items = machine.pop_to_mark()
    machine.hash(items)
    machine.push(items)


def _push_call(count: int) -> Effect:
    """Return the effect of an opcode that calls the first of the last `count` values with the others."""

    def effect(machine: Machine, content: Bytes, place: int) -> None:
        items = [machine.stack.pop() for _ in range(count)]
        machine.hash(items)
        machine.push(items)

    return effect


def _append(machine: Machine, content: Bytes, place: int) -> None:
    item = machine.stack.pop()
    machine.extend([item])


def _append_marked(machine: Machine, content: Bytes, place: int) -> None:
    items = machine.pop_to_mark()
    machine.extend(items)


def _add_marked(machine: Machine, content: Bytes, place: int) -> None:
    items = machine.pop_to_mark()
    machine.hash(items)
    machine.extend(items)


def _set_item(machine: Machine, content: Bytes, place: int) -> None:
    value, key = machine.stack.pop(), machine.stack.pop()
    machine.hash([key])
    machine.extend([key, value])


def _set_marked(machine: Machine, content: Bytes, place: int) -> None:
    items = machine.pop_to_mark()
    machine.hash(items[::2])
    machine.extend(items)


def _build(machine: Machine, content: Bytes, place: int) -> None:
    state = machine.stack.pop()
    machine.hash([state])
    machine.extend([state])


def _refer(machine: Machine, content: Bytes, place: int) -> None:
    machine.hash([machine.stack.pop()])
    machine.stack.append(ATOM)


def _name_global(machine: Machine, content: Bytes, place: int) -> None:
    del machine.stack[-2:]
    machine.stack.append(ATOM)


def _mark(machine: Machine, content: Bytes, place: int) -> None:
    machine.stack.append(MARK)


def _pop(machine: Machine, content: Bytes, place: int) -> None:
    machine.stack.pop()


def _pop_marked(machine: Machine, content: Bytes, place: int) -> None:
    machine.pop_to_mark()


def _duplicate(machine: Machine, content: Bytes, place: int) -> None:
    machine.stack.append(machine.stack[-1])


def _memoise(machine: Machine, content: Bytes, place: int) -> None:
    machine.memo[len(machine.memo)] = machine.stack[-1]


def _do_nothing(machine: Machine, content: Bytes, place: int) -> None:
    """The effect of opcodes that change neither the stack nor the memo."""


def _get(width: int) -> Effect:
    """Return the effect of an opcode that pushes a memo entry, whose number has `width` bytes; 0: digits."""

    def effect(machine: Machine, content: Bytes, place: int) -> None:
        machine.stack.append(machine.memo[_memo_number(content, place, width)])

    return effect


def _put(width: int) -> Effect:
    """Return the effect of an opcode that keeps the value on top, at a number of `width` bytes; 0: digits."""

    def effect(machine: Machine, content: Bytes, place: int) -> None:
        number = _memo_number(content, place, width)
        if not 0 <= number <= len(content):  # the unpickler's memo is a list as long as its greatest number
            raise InputError(f"it numbers a value {number}, and has fewer")
        machine.memo[number] = machine.stack[-1]

    return effect


def _memo_number(content: Bytes, place: int, width: int) -> int:
    """Return the number of a memo entry, in `width` bytes or, where that is 0, in digits. Raises IndexError."""
    if width:
        return read_number(content, place, width)
    try:
        return int(content[place : place + digit_bytes(content, place)])
    except ValueError as error:
        raise IndexError("no number") from error


def read_number(content: Bytes, place: int, width: int) -> int:
    """Return the whole number >= 0 in `width` bytes."""
    return int.from_bytes(content[place : place + width], "little")


def line_bytes(content: Bytes, place: int) -> int:
    """Return the bytes of a line, its end included. Raises IndexError when it has none."""
    end = content.find(b"\n", place)
    if end < 0:
        raise IndexError("no end of a line")
    return end + 1 - place


def digit_bytes(content: Bytes, place: int) -> int:
    """Return the bytes of a number in text. Raises InputError when it has more than 1,300 digits."""
    length = line_bytes(content, place)
    if length > _MAX_DIGITS:
        raise InputError(f"it holds a number of {length} digits; at most {_MAX_DIGITS} are read")
    return length


ATOM_OPCODES: Sequence[str] = (
    "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "STRING", "BINSTRING", "SHORT_BINSTRING",
    "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8", "NEXT_BUFFER", "NONE", "NEWTRUE", "NEWFALSE", "UNICODE",
    "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "FLOAT", "BINFLOAT", "GLOBAL", "PERSID", "EXT1", "EXT2", "EXT4",
)  # fmt: skip
EFFECTS: Mapping[str, Effect] = {
    "EMPTY_LIST": _push_tuple(0), "EMPTY_DICT": _push_tuple(0), "EMPTY_SET": _push_tuple(0),
    "EMPTY_TUPLE": _push_tuple(0), "TUPLE1": _push_tuple(1), "TUPLE2": _push_tuple(2), "TUPLE3": _push_tuple(3),
    "TUPLE": _push_marked, "LIST": _push_marked, "DICT": _push_hashed, "FROZENSET": _push_hashed,
    "APPEND": _append, "APPENDS": _append_marked, "ADDITEMS": _add_marked, "SETITEM": _set_item,
    "SETITEMS": _set_marked, "BUILD": _build, "REDUCE": _push_call(2), "NEWOBJ": _push_call(2),
    "NEWOBJ_EX": _push_call(3), "OBJ": _push_hashed, "INST": _push_hashed, "BINPERSID": _refer,
    "STACK_GLOBAL": _name_global, "MARK": _mark, "POP": _pop, "POP_MARK": _pop_marked, "DUP": _duplicate,
    "GET": _get(0), "BINGET": _get(1), "LONG_BINGET": _get(4), "PUT": _put(0), "BINPUT": _put(1),
    "LONG_BINPUT": _put(4), "MEMOIZE": _memoise, "READONLY_BUFFER": _do_nothing, "PROTO": _do_nothing,
    "FRAME": _do_nothing, "STOP": _do_nothing,
}  # fmt: skip
"""Opcode -> its effect, of those that do not push a value without parts."""
