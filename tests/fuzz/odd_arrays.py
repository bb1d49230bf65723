"""Make arrays and tensors that a reader does not expect: other types and shapes, undefined numbers, false sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.random import Generator

from .odd_values import draw_object

_TYPES = ("f2", "f8", "i1", "i8", "u2", "c8", "?", "U3", "S3", "M8[s]", ">f4")
_NUMBERS = (float("nan"), float("inf"), float("-inf"), 1e308, -1.0, 0.0, 1e18, 2.0**31, -(2.0**63))


def odd_array(array: Any, rng: Generator) -> Any:
    """Return an array made from a valid one: of another type or shape, or with odd numbers in it."""
    return list(_CHANGES.values())[rng.integers(len(_CHANGES))](np.array(array), rng)


def odd_tensor(tensor: torch.Tensor, rng: Generator) -> Any:
    """Return a tensor made from a valid one; its kind may be one that numpy lacks."""
    choice = rng.integers(14)
    if choice == 0:
        return torch.zeros(1).expand(10**6, 10**6)  # a file of four bytes
    if choice == 1:
        return torch.zeros(3, 4).to_sparse()
    if choice == 2:
        return torch.quantize_per_tensor(torch.zeros(3), 0.1, 0, torch.quint8)
    if choice == 3:
        return torch.zeros(3, dtype=torch.bfloat16)
    if choice == 4:
        return tensor.clone().requires_grad_() if tensor.is_floating_point() else tensor[None]
    if choice == 5:
        return torch.zeros(2, 3, device="meta")
    if choice == 6:
        narrow = (torch.float8_e4m3fn, torch.float8_e5m2, torch.float4_e2m1fn_x2)[rng.integers(3)]
        return torch.zeros(tensor.shape, dtype=torch.uint8).view(narrow)
    if choice == 7:
        return torch.zeros(0, 2**60)
    changed = odd_array(tensor.detach().float().numpy(), rng)
    try:
        return torch.from_numpy(np.ascontiguousarray(changed))
    except (TypeError, ValueError):  # texts, times and numbers of the other byte order
        return changed.tolist()


def odd_entry(value: Any, rng: Generator, kind: type, odd: Callable[[Any, Generator], Any]) -> Any:
    """Return an object that may replace an entry of a file.

    Args:
        value: of the entry.
        rng: of the case.
        kind: type of the entries that mostly become odd objects of the same type.
        odd: makes an odd object from such an entry.
    """
    return odd(value, rng) if isinstance(value, kind) and rng.random() < 0.8 else draw_object(rng)


def _with_number(array: Any, rng: Generator) -> Any:
    with np.errstate(all="ignore"):
        values = array.ravel().copy()
        if values.size and values.dtype.kind in "fiu":
            values[rng.integers(values.size)] = np.asarray(_NUMBERS[rng.integers(len(_NUMBERS))]).astype(values.dtype)
        return values.reshape(array.shape)


def _with_type(array: Any, rng: Generator) -> Any:
    with np.errstate(all="ignore"):
        try:
            return array.astype(_TYPES[rng.integers(len(_TYPES))])
        except (TypeError, ValueError):
            return array.astype("U3")


def _with_fields(array: Any, _rng: Generator) -> Any:
    return np.zeros(len(array) if array.ndim else 1, dtype=[("a", "f4"), ("b", "i4", (2,))])


_CHANGES: dict[str, Callable[[Any, Generator], Any]] = {
    "number": _with_number,
    "type": _with_type,
    "fields": _with_fields,
    "scalar": lambda array, _: array.ravel()[0] if array.size else array,
    "flat": lambda array, _: array.ravel(),
    "deep": lambda array, _: array[(None,) * 20],
    "empty": lambda array, _: array[:0],
    "no columns": lambda array, _: array[..., :0] if array.ndim else array,
    "transposed": lambda array, _: array.T,
    "short": lambda array, _: array[:-1] if array.ndim else array,
    "double": lambda array, _: np.concatenate([array, array]) if array.ndim else array,
    "fortran": lambda array, _: np.asfortranarray(array),
    "random": lambda array, rng: rng.standard_normal(array.shape).astype("f4"),
    "zeros": lambda array, _: np.zeros_like(array),
}
