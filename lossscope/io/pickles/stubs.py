"""Stand-ins for the classes that released checkpoints hold beside tensors: they keep their contents and do nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lossscope.errors import InputError

_MAX_DEPTH = 64


class ConfigStub:
    """Any configuration object: takes every argument and keeps the attributes that the file sets in `attributes`."""

    __slots__ = ("attributes",)

    def __new__(cls, *arguments: Any, **named: Any) -> ConfigStub:
        stub = super().__new__(cls)
        stub.attributes = {}
        return stub

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self.attributes: dict[Any, Any] = dict(named)

    def __setstate__(self, state: object) -> None:
        if not isinstance(state, dict):
            raise InputError("it holds a configuration whose attributes are no dict: do not trust this file")
        self.attributes.update(dict.items(state))


class PathStub:
    """A path of another machine: its parts, never looked up here."""

    __slots__ = ("parts",)

    def __new__(cls, *parts: Any) -> PathStub:
        stub = super().__new__(cls)
        stub.parts = ()
        return stub

    def __init__(self, *parts: Any) -> None:
        if not all(isinstance(part, str) for part in parts):
            raise InputError("it holds a path with parts that are no texts: do not trust this file")
        self.parts: tuple[str, ...] = tuple(parts)

    def __setstate__(self, state: object) -> None:
        if not isinstance(state, dict):
            raise InputError("it holds a path whose attributes are no dict: do not trust this file")

    def __str__(self) -> str:
        return "/".join(self.parts).replace("//", "/")


def to_plain(
    value: Any, convert_leaf: Callable[[Any], Any], convert_key: Callable[[Any], Any] = lambda key: key
) -> Any:
    """Return stubs as dicts, paths as texts and tuples as lists, at every depth; all other values by `convert_leaf`.

    A value that several containers share is converted once. Raises InputError when containers are nested deeper than
    64 levels, as one that contains itself is.

    Args:
        value: what a file holds.
        convert_leaf: conversion of everything that is no container.
        convert_key: conversion of the keys of dicts.
    """
    return _PlainConverter(convert_leaf, convert_key)(value, 0)


class _PlainConverter:
    def __init__(self, convert_leaf: Callable[[Any], Any], convert_key: Callable[[Any], Any]) -> None:
        self._convert_leaf, self._convert_key = convert_leaf, convert_key
        self._converted: dict[int, Any] = {}

    def __call__(self, value: Any, depth: int) -> Any:
        if type(value) is PathStub:
            return str(value)
        container = value.attributes if type(value) is ConfigStub else value
        if not isinstance(container, dict) and type(container) not in (list, tuple):
            return self._convert_leaf(value)
        if depth > _MAX_DEPTH:
            raise InputError(f"it holds a container inside itself, or more than {_MAX_DEPTH} levels deep")
        if id(value) not in self._converted:
            self._converted[id(value)] = self._convert_container(container, depth + 1)
        return self._converted[id(value)]

    def _convert_container(self, container: Any, depth: int) -> Any:
        if isinstance(container, dict):
            return {self._convert_key(k): self(v, depth) for k, v in dict.items(container)}
        return [self(item, depth) for item in container]
