"""What the names in a pickle stand for when it is read here: things that may be called, and can not be changed."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

from lossscope.errors import InputError


class Maker:
    """A callable without attributes to set: a pickle may ask it for an object, and nothing else.

    make: what is called. A class or a function in its place could be given attributes by the file.
    """

    __slots__ = ("make",)

    def __init__(self, make: Callable[..., Any]) -> None:
        self.make = make

    def __call__(self, *arguments: Any) -> Any:
        return self.make(*arguments)

    def __setstate__(self, state: object) -> None:
        raise InputError("it changes one of the things that it names: do not trust this file")


class Ordered(dict[Any, Any]):
    """An OrderedDict of a file: its items in their order; attributes set beside them are dropped."""

    __slots__ = ()

    def __setstate__(self, state: object) -> None:
        """`_metadata` of a state dict comes here, which no reader of weights needs."""


def encoded(text: str, encoding: str = "latin1") -> bytes:
    """How protocols before the third spell bytes. Raises UnpicklingError for any other codec."""
    if encoding not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError(f"bytes in the encoding {encoding!r}")
    return text.encode("latin1")
