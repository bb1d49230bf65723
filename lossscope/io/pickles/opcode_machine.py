"""The stack and the memo of an unpickler, with the sizes of values in place of the values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lossscope.errors import InputError

ATOM = (1, 0)  # size and depth of a value without parts
MARK = None
_MAX_HASHED = 1 << 26  # values that keys, and the arguments of calls, hold together
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
