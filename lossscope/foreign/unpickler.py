"""Pickles of others, read without running any code of theirs: plain containers and numpy arrays, nothing else."""

from __future__ import annotations

import collections
import pickle
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy._core import multiarray, numeric

from ..errors import InputError
from ..files import existing_file

_BUILTINS: Mapping[str, Any] = {
    "list": list, "dict": dict, "set": set, "frozenset": frozenset, "tuple": tuple, "str": str, "unicode": str,
    "int": int, "long": int, "float": float, "bool": bool, "bytes": bytes, "complex": complex,
}  # fmt: skip
_COLLECTIONS: Mapping[str, Any] = {"defaultdict": collections.defaultdict, "OrderedDict": collections.OrderedDict}
_MULTIARRAY: Mapping[str, Any] = {
    "_reconstruct": getattr(multiarray, "_reconstruct"),  # noqa: B009 - numpy's stubs leave it out
    "scalar": getattr(multiarray, "scalar"),  # noqa: B009
}
_FROM_BUFFER: Mapping[str, Any] = {"_frombuffer": getattr(numeric, "_frombuffer")}  # noqa: B009


def _encode(text: str, encoding: str = "latin1") -> bytes:
    """How old protocols spell bytes; any other codec is refused."""
    if encoding not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError(f"bytes in the encoding {encoding!r}")
    return text.encode("latin1")


_KNOWN: Mapping[str, Mapping[str, Any]] = {
    "builtins": _BUILTINS,
    "__builtin__": _BUILTINS,
    "collections": _COLLECTIONS,
    "_codecs": {"encode": _encode},
    "numpy": {"ndarray": np.ndarray, "dtype": np.dtype},
    "numpy.core.multiarray": _MULTIARRAY,
    "numpy._core.multiarray": _MULTIARRAY,
    "numpy.core.numeric": _FROM_BUFFER,
    "numpy._core.numeric": _FROM_BUFFER,
}


class _Reader(pickle.Unpickler):
    """Knows plain containers and what an array is made of; every other global is an InputError naming it."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        super().__init__(file, encoding="latin1")
        self._path = path

    def find_class(self, module: str, name: str) -> Callable[..., Any]:
        found: Callable[..., Any] | None = _KNOWN.get(module, {}).get(name)
        if found is None:
            got = f"{module}.{name}, which was not run"
            raise InputError(f"{self._path} must hold plain containers and arrays; got {got}: do not trust this file")
        return found

    def persistent_load(self, pid: Any) -> Any:
        raise InputError(f"{self._path} must hold all of its data; got a reference to something outside")


def read_pickle(path: Path | str) -> Any:
    """What a pickle holds; text of Python 2 as latin1.

    Raises InputError when it is missing, cut off, no pickle, or asks for any global but those above, named.
    """
    path = existing_file(path)
    with open(path, "rb") as file:
        return read_stream(file, path)


def read_stream(file: IO[bytes], path: Path) -> Any:
    """What the pickle that begins here holds; `path` is for messages. Raises InputError as read_pickle does."""
    try:
        with warnings.catch_warnings(action="ignore"):  # numpy's, of how old versions of it wrote arrays
            return _Reader(file, path).load()
    except InputError:
        raise
    except Exception as problem:  # a damaged pickle fails in any way it likes
        got = f"{type(problem).__name__} ({problem})"
        raise InputError(f"{path} must be a whole pickle; got {got}: fetch the file again") from None
