"""One thing for each direction of retrieval."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    pass


T = TypeVar("T")


U = TypeVar("U")


@dataclass(frozen=True)
class Pair(Generic[T]):
    """One thing for each direction."""

    i2t: T
    t2i: T

    def __iter__(self) -> Iterator[T]:
        return iter((self.i2t, self.t2i))

    def map(self, change: Callable[[T], U]) -> Pair[U]:
        """Both directions through one function."""
        return Pair(change(self.i2t), change(self.t2i))
