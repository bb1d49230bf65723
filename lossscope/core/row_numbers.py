"""Ids of items that have none but their row, which take no memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload


@dataclass(frozen=True)
class RowNumbers(Sequence[str]):
    """`"0"`, `"1"`, ... of n items.

    >>> RowNumbers(3)[-1], list(RowNumbers(3)[1:]), RowNumbers(3) == RowNumbers(3)
    ('2', ['1', '2'], True)
    """

    n: int

    def __len__(self) -> int:
        return self.n

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> list[str]: ...
    def __getitem__(self, row: int | slice) -> str | list[str]:
        numbers = range(self.n)[row]
        return [str(number) for number in numbers] if isinstance(numbers, range) else str(numbers)
