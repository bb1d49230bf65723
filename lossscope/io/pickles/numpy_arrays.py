"""Numpy's part of a pickle, rebuilt from checked pieces: no flag, size or pointer of the file reaches numpy."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import numpy.typing as npt

from lossscope.errors import InputError

from .callables import Constructor

_DTYPE_CODE = re.compile(r"[<>=|]?[biufSUO]\d{0,7}")
_MAX_DIMENSIONS = 32


class DtypeStub:
    """A dtype of the file: booleans, whole numbers, floats, bytes, texts or objects.

    Raises InputError that names any other. Flags and alignment in the file are ignored.
    """

    __slots__ = ("dtype",)

    def __init__(self, code: object, *_: object) -> None:
        if not isinstance(code, str) or not _DTYPE_CODE.fullmatch(code):
            got = code[:60] if isinstance(code, str) else type(code).__name__
            raise InputError(f"arrays must be of numbers, texts or objects; it holds one of kind {got}")
        self.dtype: np.dtype[Any] = np.dtype(code)

    def __setstate__(self, state: object) -> None:
        if not isinstance(state, tuple) or len(state) < 8 or state[1] not in tuple("<>=|"):
            raise InputError(f"arrays must be of numbers, texts or objects; it holds a {self.dtype} changed by hand")
        if any(part is not None for part in state[2:5]) or state[5] not in (-1, self.dtype.itemsize):
            raise InputError(f"arrays must be of numbers, texts or objects; it holds a {self.dtype} with parts")
        self.dtype = self.dtype.newbyteorder(state[1])


class _PendingArray(np.ndarray[Any, Any]):
    """An array between the two steps in which a pickle builds it: empty first, then filled, once."""

    def __setstate__(self, state: Any) -> None:
        if self.shape != (0,) or not isinstance(state, tuple) or len(state) not in (4, 5):
            raise InputError("arrays must be built once and whole; it holds one that is not")
        shape, kind, fortran, raw = state[-4:]
        dtype, count = _dtype_of(kind), _element_count(shape)
        content = _object_list(raw, count) if dtype.hasobject else _element_bytes(raw, dtype, count)
        super().__setstate__((1, shape, dtype, bool(fortran), content))  # type: ignore[arg-type]


def build_empty(kind: object, shape: object, code: object) -> npt.NDArray[Any]:
    """Return the empty array that a pickle fills next. Raises InputError for a subclass of numpy's array."""
    if kind is not NDARRAY:
        raise InputError("arrays must be numpy's own; it holds one of another class")
    return _PendingArray((0,), np.int8)


def build_scalar(kind: object, raw: object = b"") -> Any:
    """Return a number or text of numpy from its bytes. Raises InputError for an object, and for more or fewer bytes."""
    dtype = _dtype_of(kind)
    if dtype.hasobject:
        raise InputError("a numpy scalar must be a number or a text; it holds an object as one")
    if not dtype.itemsize:
        return dtype.type()
    return np.frombuffer(_element_bytes(raw, dtype, 1), dtype)[0]


def build_from_buffer(raw: object, kind: object, shape: object, order: object, axes: object = None) -> npt.NDArray[Any]:
    """Return an array from its bytes, as protocol 5 stores it. Raises InputError when they do not fill the shape."""
    dtype, count = _dtype_of(kind), _element_count(shape)
    if dtype.hasobject or order not in ("C", "F", "K"):
        raise InputError("arrays in buffers must be of numbers or texts; it holds one that is not")
    rows = np.frombuffer(_element_bytes(raw, dtype, count), dtype) if count else np.zeros(0, dtype)
    if order == "K" and axes is not None:
        return rows.reshape(shape).transpose(axes)  # type: ignore[call-overload, no-any-return]
    return rows.reshape(shape, order="A" if order == "K" else order)  # type: ignore[call-overload, no-any-return]


def _refuse(*_: object) -> None:
    raise InputError("arrays must be built from their bytes; it holds one without")


def _dtype_of(kind: object) -> np.dtype[Any]:
    if not isinstance(kind, DtypeStub):
        raise InputError(f"arrays must state their dtype; got {type(kind).__name__}")
    return kind.dtype


def _element_count(shape: object) -> int:
    """Return the number of elements of a shape. Raises InputError when it is not a shape."""
    if (
        not isinstance(shape, tuple)
        or len(shape) > _MAX_DIMENSIONS
        or not all(type(n) is int and n >= 0 for n in shape)
    ):
        raise InputError("shapes of arrays must be whole numbers >= 0; it holds one that is not")
    return math.prod(shape)


def _element_bytes(raw: object, dtype: np.dtype[Any], count: int) -> bytes:
    """Return the bytes of `count` elements, booleans as 0 or 1. Raises InputError when there are more or fewer."""
    content = raw.encode("latin1") if isinstance(raw, str) else raw
    if (
        not isinstance(content, bytes | bytearray)
        or len(content) != count * dtype.itemsize
        or (count and not dtype.itemsize)
    ):
        got = f"{len(content)} bytes" if isinstance(content, bytes | bytearray) else type(content).__name__
        raise InputError(f"{count} elements of {dtype} must be of {dtype.itemsize} bytes each; got {got}")
    return (np.frombuffer(content, np.uint8) != 0).tobytes() if dtype.kind == "b" else bytes(content)


def _object_list(raw: object, count: int) -> list[Any]:
    if type(raw) is not list or len(raw) != count:
        raise InputError(f"an array of {count} objects must hold a list of {count} values; it holds one that does not")
    return raw


NDARRAY = Constructor(_refuse)
"""What numpy.ndarray stands for: the kind of array that `build_empty` takes."""
