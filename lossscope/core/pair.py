"""A pair of values, one for each direction of retrieval."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True)
class Pair(Generic[T]):
    """One value for each direction: image-to-text (i2t) and text-to-image (t2i)."""

    i2t: T
    t2i: T

    def __iter__(self) -> Iterator[T]:
        return iter((self.i2t, self.t2i))

    def map(self, function: Callable[[T], U]) -> Pair[U]:
        """Return the pair of function(i2t) and function(t2i)."""
        return Pair(function(self.i2t), function(self.t2i))
