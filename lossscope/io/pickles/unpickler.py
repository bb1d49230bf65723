"""Pickles of others, read without running any code of theirs: plain containers and numpy arrays, nothing else."""

from __future__ import annotations

import collections
import pickle
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from lossscope.errors import InputError

from ..files import require_file
from .callables import Maker, Ordered, encoded
from .numpy_arrays import NUMPY

_TYPES = (list, dict, set, frozenset, tuple, str, int, float, bool, bytes, complex)
_BUILTINS: Mapping[str, Maker] = {
    **{kind.__name__: Maker(kind) for kind in _TYPES},
    "unicode": Maker(str),
    "long": Maker(int),
}


def _default(factory: object = None, *_: object) -> collections.defaultdict[Any, Any]:
    """A dict whose absent values are one of the plain containers."""
    if factory is not None and factory not in _BUILTINS.values():
        raise pickle.UnpicklingError("a defaultdict of other things than plain containers")
    return collections.defaultdict(factory.make if isinstance(factory, Maker) else None)


_KNOWN: Mapping[str, Mapping[str, Maker]] = {
    **NUMPY,
    "builtins": _BUILTINS,
    "__builtin__": _BUILTINS,
    "collections": {"defaultdict": Maker(_default), "OrderedDict": Maker(Ordered)},
    "_codecs": {"encode": Maker(encoded)},
}


class _Reader(pickle.Unpickler):
    """Knows plain containers and what an array is made of; every other global is an InputError naming it."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(file, encoding="latin1")

    def find_class(self, module: str, name: str) -> Maker:
        found = _KNOWN.get(module, {}).get(name)
        if found is None:
            raise InputError(f"got {module}.{name}, which was not run: do not trust this file")
        return found

    def persistent_load(self, pid: Any) -> Any:
        raise InputError("got a reference to something outside of it")


def read_pickle(path: Path | str) -> Any:
    """What a pickle holds; text of Python 2 as latin1.

    Raises InputError when it is missing, cut off, no pickle, or asks for any global but those above, named.
    """
    path = require_file(path)
    with open(path, "rb") as file:
        return read_stream(file, path)


def read_stream(file: IO[bytes], path: Path) -> Any:
    """What the pickle that begins here holds; `path` is for messages. Raises InputError as read_pickle does."""
    try:
        with warnings.catch_warnings(action="ignore"):  # numpy's, of how old versions of it wrote arrays
            return _Reader(file).load()
    except InputError as problem:
        raise InputError(f"{path} must hold plain containers and arrays; {problem}") from None
    except Exception as problem:  # a damaged pickle fails in any way it likes
        got = f"{type(problem).__name__} ({problem})"
        raise InputError(f"{path} must be a whole pickle; got {got}: fetch the file again") from None
