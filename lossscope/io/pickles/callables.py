"""What the globals of a pickle stand for when it is read here: callables that a file can call but cannot change."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

from lossscope.errors import InputError


class Constructor:
    """A callable whose attributes cannot be set: a pickle can call it to build an object, and nothing else.

    A class or a function in its place could be given attributes by the file.

    Args:
        function: what is called.
    """

    __slots__ = ("function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)

    def __setstate__(self, state: object) -> None:
        raise InputError("it changes one of the globals that it names: do not trust this file")


class PlainOrderedDict(dict[Any, Any]):
    """The OrderedDict of a file: its items in their order; attributes set on it are dropped."""

    __slots__ = ()

    def __setstate__(self, state: object) -> None:
        """Drop the attributes, such as `_metadata` of a state dict, which no reader of weights needs."""


def encode_latin1(text: str, encoding: str = "latin1") -> bytes:
    """Return the bytes that protocols 0 to 2 store as latin1 text. Raises UnpicklingError for any other encoding."""
    if encoding not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError(f"bytes in the encoding {encoding!r}")
    return text.encode("latin1")
