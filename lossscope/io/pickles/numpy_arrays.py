"""Numpy's part of a pickle, made again from checked pieces: no flag, size or pointer of the file reaches numpy."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from lossscope.errors import InputError

from .callables import Maker

_CODE = re.compile(r"[<>=|]?[biufSUO]\d{0,7}")
_DIMENSIONS = 32


class Kind:
    """A dtype of the file: booleans, whole numbers, floats, bytes, texts, objects.

    Raises InputError naming any other. What the file says of flags and alignment is not heard.
    """

    __slots__ = ("dtype",)

    def __init__(self, code: object, *_: object) -> None:
        if not isinstance(code, str) or not _CODE.fullmatch(code):
            got = code[:60] if isinstance(code, str) else type(code).__name__
            raise InputError(f"arrays must be of numbers, texts or objects; it holds one of kind {got}")
        self.dtype: np.dtype[Any] = np.dtype(code)

    def __setstate__(self, state: object) -> None:
        if not isinstance(state, tuple) or len(state) < 8 or state[1] not in tuple("<>=|"):
            raise InputError(f"arrays must be of numbers, texts or objects; it holds a {self.dtype} changed by hand")
        if any(part is not None for part in state[2:5]) or state[5] not in (-1, self.dtype.itemsize):
            raise InputError(f"arrays must be of numbers, texts or objects; it holds a {self.dtype} with parts")
        self.dtype = self.dtype.newbyteorder(state[1])


class _Array(np.ndarray[Any, Any]):
    """An array between the two steps in which a pickle makes it: empty first, then filled, once."""

    def __setstate__(self, state: Any) -> None:
        if self.shape != (0,) or not isinstance(state, tuple) or len(state) not in (4, 5):
            raise InputError("arrays must be made once and whole; it holds one that is not")
        shape, kind, fortran, raw = state[-4:]
        dtype, count = _known(kind), _count(shape)
        content = _objects(raw, count) if dtype.hasobject else _bytes(raw, dtype, count)
        super().__setstate__((1, shape, dtype, bool(fortran), content))  # type: ignore[arg-type]


def reconstruct(kind: object, shape: object, code: object) -> npt.NDArray[Any]:
    """The empty array that a pickle fills next. Raises InputError for a subclass of numpy's array."""
    if kind is not _NDARRAY:
        raise InputError("arrays must be numpy's own; it holds one of another class")
    return _Array((0,), np.int8)


def scalar(kind: object, raw: object = b"") -> Any:
    """One number or text of numpy from its bytes. Raises InputError when they are too few, too many, or objects."""
    dtype = _known(kind)
    if dtype.hasobject:
        raise InputError("numbers must be numbers; it holds an object as one")
    if not dtype.itemsize:
        return dtype.type()
    return np.frombuffer(_bytes(raw, dtype, 1), dtype)[0]


def from_buffer(raw: object, kind: object, shape: object, order: object, axes: object = None) -> npt.NDArray[Any]:
    """An array from its bytes, as the fifth protocol writes it. Raises InputError when they do not fill the shape."""
    dtype, count = _known(kind), _count(shape)
    if dtype.hasobject or order not in ("C", "F", "K"):
        raise InputError("arrays in buffers must be of numbers or texts; it holds one that is not")
    rows = np.frombuffer(_bytes(raw, dtype, count), dtype) if count else np.zeros(0, dtype)
    if order == "K" and axes is not None:
        return rows.reshape(shape).transpose(axes)  # type: ignore[call-overload, no-any-return]
    return rows.reshape(shape, order="A" if order == "K" else order)  # type: ignore[call-overload, no-any-return]


def _refused(*_: object) -> None:
    raise InputError("arrays must be made from their bytes; it asks for one without")


def _known(kind: object) -> np.dtype[Any]:
    if not isinstance(kind, Kind):
        raise InputError(f"arrays must say their kind; got {type(kind).__name__}")
    return kind.dtype


def _count(shape: object) -> int:
    """How many elements a shape has. Raises InputError when it is none."""
    if not isinstance(shape, tuple) or len(shape) > _DIMENSIONS or not all(type(n) is int and n >= 0 for n in shape):
        raise InputError("shapes of arrays must be whole numbers from 0 on; it holds one that is not")
    return math.prod(shape)


def _bytes(raw: object, dtype: np.dtype[Any], count: int) -> bytes:
    """The bytes of `count` elements, those of booleans as 0 or 1. Raises InputError when they are more or fewer."""
    held = raw.encode("latin1") if isinstance(raw, str) else raw
    if not isinstance(held, bytes | bytearray) or len(held) != count * dtype.itemsize or (count and not dtype.itemsize):
        got = f"{len(held)} bytes" if isinstance(held, bytes | bytearray) else type(held).__name__
        raise InputError(f"{count} elements of {dtype} must be of {dtype.itemsize} bytes each; got {got}")
    return (np.frombuffer(held, np.uint8) != 0).tobytes() if dtype.kind == "b" else bytes(held)


def _objects(raw: object, count: int) -> list[Any]:
    if type(raw) is not list or len(raw) != count:
        raise InputError(f"an array of {count} objects must come with a list of them; it holds one that does not")
    return raw


_NDARRAY = Maker(_refused)
_MULTIARRAY = {"_reconstruct": Maker(reconstruct), "scalar": Maker(scalar)}
_NUMERIC = {"_frombuffer": Maker(from_buffer)}
NUMPY: Mapping[str, Mapping[str, Maker]] = {
    "numpy": {"ndarray": _NDARRAY, "dtype": Maker(Kind)},
    "numpy.core.multiarray": _MULTIARRAY,
    "numpy._core.multiarray": _MULTIARRAY,
    "numpy.core.numeric": _NUMERIC,
    "numpy._core.numeric": _NUMERIC,
}
