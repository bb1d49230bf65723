"""Stand-ins for the classes that original checkpoints hold beside tensors: they keep their contents and do nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lossscope.errors import InputError

from .numpy_arrays import NUMPY, Kind

_DEEPEST = 64


class Bag:
    """Any configuration object: takes every argument, keeps the attributes it is given apart from its own."""

    __slots__ = ("held",)

    def __new__(cls, *arguments: Any, **named: Any) -> Bag:
        made = super().__new__(cls)
        made.held = {}
        return made

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self.held: dict[Any, Any] = dict(named)

    def __setstate__(self, state: object) -> None:
        if not isinstance(state, dict):
            raise InputError("it holds a configuration whose contents are no dict: do not trust this file")
        self.held.update(dict.items(state))


class PathBag:
    """A path of another machine: its parts, never looked up."""

    __slots__ = ("parts",)

    def __new__(cls, *parts: Any) -> PathBag:
        made = super().__new__(cls)
        made.parts = ()
        return made

    def __init__(self, *parts: Any) -> None:
        if not all(isinstance(part, str) for part in parts):
            raise InputError("it holds a path that is not made of texts: do not trust this file")
        self.parts: tuple[str, ...] = tuple(parts)

    def __setstate__(self, state: object) -> None:
        if not isinstance(state, dict):
            raise InputError("it holds a path whose contents are no dict: do not trust this file")

    def __str__(self) -> str:
        return "/".join(self.parts).replace("//", "/")


_PATHS = [f"{module}.{kind}Path" for module in ("pathlib", "pathlib._local") for kind in ("Posix", "Windows", "")]
CLASSES: Mapping[str, type[Any]] = {
    "argparse.Namespace": Bag,
    "parse_config.ConfigParser": Bag,
    **dict.fromkeys(_PATHS, PathBag),
}
_SCALARS = [f"numpy.{core}.multiarray" for core in ("core", "_core")]
INERT: list[Any] = [
    *((kind, name) for name, kind in CLASSES.items()),
    *((NUMPY[module]["scalar"], f"{module}.scalar") for module in _SCALARS),
    (Kind, "numpy.dtype"),
]


def plain(value: Any, leaf: Callable[[Any], Any], key: Callable[[Any], Any] = lambda key: key) -> Any:
    """Inert objects as dicts, paths as texts and tuples as lists, all the way down; `leaf` of everything else.

    key: what becomes of the names in dicts. What is held twice is walked once. Raises InputError when things are
    nested deeper than 64 levels, as what holds itself is.
    """
    return _Walk(leaf, key)(value, 0)


class _Walk:
    def __init__(self, leaf: Callable[[Any], Any], key: Callable[[Any], Any]) -> None:
        self._leaf, self._key = leaf, key
        self._done: dict[int, Any] = {}

    def __call__(self, value: Any, depth: int) -> Any:
        if type(value) is PathBag:
            return str(value)
        inside = value.held if type(value) is Bag else value
        if not isinstance(inside, dict) and type(inside) not in (list, tuple):
            return self._leaf(value)
        if depth > _DEEPEST:
            raise InputError(f"it holds what is nested in itself, or more than {_DEEPEST} levels deep")
        if id(value) not in self._done:
            self._done[id(value)] = self._inside(inside, depth + 1)
        return self._done[id(value)]

    def _inside(self, inside: Any, depth: int) -> Any:
        if isinstance(inside, dict):
            return {self._key(k): self(v, depth) for k, v in dict.items(inside)}
        return [self(item, depth) for item in inside]
