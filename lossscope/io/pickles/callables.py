"""What the globals of a pickle stand for when it is read here: callables that a file can call but cannot change."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

from lossscope.errors import InputError

_MAX_DIGITS = 1300  # of a whole number in text


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


def build_text(text: object = "", encoding: str = "latin1") -> str:
    """Return a text. Raises UnpicklingError for anything else, whose written form could be of any length."""
    if isinstance(text, bytes):
        return text.decode("latin1")
    if not isinstance(text, str):
        raise pickle.UnpicklingError(f"a text made of a {type(text).__name__}")
    return text


def build_bytes(content: object = b"", encoding: str = "latin1") -> bytes:
    """Return bytes, of a list of numbers too. Raises UnpicklingError for a length, which could be any."""
    if isinstance(content, str):
        return encode_latin1(content, encoding)
    if not isinstance(content, bytes | bytearray | list | tuple):
        raise pickle.UnpicklingError(f"bytes made of a {type(content).__name__}")
    return bytes(content)


def build_integer(number: object = 0, base: int = 10) -> int:
    """Return a whole number. Raises UnpicklingError for one of many digits, and for anything that is no number."""
    if isinstance(number, str) and len(number) <= _MAX_DIGITS:
        return int(number, base)
    if not isinstance(number, bool | int | float):
        raise pickle.UnpicklingError(f"a whole number made of a {type(number).__name__}")
    return int(number)
