"""Tensors of a torch file from its raw bytes, each checked to lie inside its storage."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from lossscope.errors import InputError

DTYPES: Mapping[str, torch.dtype] = {
    "HalfStorage": torch.float16, "BFloat16Storage": torch.bfloat16, "FloatStorage": torch.float32,
    "DoubleStorage": torch.float64, "LongStorage": torch.int64, "IntStorage": torch.int32,
    "ShortStorage": torch.int16, "CharStorage": torch.int8, "ByteStorage": torch.uint8, "BoolStorage": torch.bool,
}  # fmt: skip
_MAX_DIMENSIONS = 64


class StorageRef(NamedTuple):
    """A reference to a storage that is read later: `size` numbers from `start` on of the `total` numbers at `key`."""

    kind: str
    key: str
    total: int
    start: int
    size: int

    @property
    def width(self) -> int:
        """Return the bytes of one number."""
        return DTYPES[self.kind].itemsize


class TensorRef(NamedTuple):
    """A reference to a tensor in a storage that is read later."""

    storage: StorageRef
    offset: int
    size: tuple[int, ...]
    stride: tuple[int, ...]


def parse_storage_id(identity: object) -> StorageRef:
    """Return the storage of a persistent id: ('storage', kind, key, device, count[, (key, start, size) or None]).

    Raises InputError for any other id, and for a part that is not inside the whole.
    """
    if not isinstance(identity, tuple) or len(identity) not in (5, 6) or identity[0] != "storage":
        raise InputError("it refers to an object that is no storage of numbers, which is never loaded")
    _, kind, key, _, count, *view = identity
    if not isinstance(kind, str) or kind not in DTYPES or not isinstance(key, str) or not _are_sizes(count):
        raise InputError("it refers to a storage of no known kind, name or size")
    part = view[0] if view and view[0] is not None else (key, 0, count)
    if not isinstance(part, tuple) or len(part) != 3 or not _are_sizes(*part[1:]) or part[1] + part[2] > count:
        raise InputError(f"storage {key[:60]!r} must hold its parts; one reaches outside")
    return StorageRef(kind, key, count, part[1], part[2])


def build_tensor_ref(storage: object, offset: object, size: object, stride: object, *more: object) -> TensorRef:
    """Return a tensor as torch's pickles build it. Raises InputError when it is not inside its storage.

    Args:
        storage: where its numbers are.
        offset: its first number.
        size: its shape.
        stride: numbers between neighbours along each dimension.
        more: requires_grad and hooks, which weights do not need, and marks of conjugate views, which must be absent.
    """
    if not isinstance(storage, StorageRef) or not isinstance(size, tuple) or not isinstance(stride, tuple):
        raise InputError("it holds a tensor without a storage or a shape")
    valid = _are_sizes(offset, *size, *stride) and len(size) == len(stride) <= _MAX_DIMENSIONS
    if not valid or more[2:] not in ((), (None,), ({},)):
        raise InputError("it holds a tensor whose shape is no list of whole numbers >= 0")
    last = sum((n - 1) * step for n, step in zip(size, stride, strict=True)) if math.prod(size) else -1
    if offset + last >= storage.size or math.prod(size) > storage.size:  # type: ignore[operator]
        raise InputError(f"storage {storage.key[:60]!r} must hold its tensors; one of shape {size[:8]} reaches outside")
    return TensorRef(storage, offset, size, stride)  # type: ignore[arg-type]


def unwrap_parameter(data: object, *_: object) -> TensorRef:
    """Return the tensor that a parameter holds. Raises InputError when it is no tensor."""
    if not isinstance(data, TensorRef):
        raise InputError("it holds a parameter that is no tensor")
    return data


def read_tensor(ref: TensorRef, raw: bytearray) -> Tensor:
    """Return the tensor in the bytes of its storage, sharing their memory. Raises InputError when they are too few."""
    storage = ref.storage
    if len(raw) < storage.total * storage.width:
        raise InputError(
            f"storage {storage.key[:60]!r} must be of {storage.total * storage.width} bytes; got {len(raw)}"
        )
    dtype = DTYPES[storage.kind]
    if not math.prod(ref.size):
        return torch.empty(ref.size, dtype=dtype)
    read = torch.uint8 if dtype is torch.bool else dtype
    rows = torch.frombuffer(raw, dtype=read, count=storage.size, offset=storage.start * storage.width)
    if dtype is torch.bool:
        rows = rows.clamp_(max=1).view(torch.bool)  # in place: a copy for each tensor could be more than the file
    return rows.as_strided(ref.size, ref.stride, ref.offset)


def _are_sizes(*numbers: object) -> bool:
    return all(type(number) is int and 0 <= number < 1 << 62 for number in numbers)
