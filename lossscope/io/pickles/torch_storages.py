"""Tensors of a torch file from its raw bytes, each inside the storage that the file says it lies in."""

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
_DIMENSIONS = 64


class Stored(NamedTuple):
    """A storage that is read later: `total` numbers at `key`, of which this is `size` from `start` on."""

    kind: str
    key: str
    total: int
    start: int
    size: int

    @property
    def width(self) -> int:
        """Bytes of one number."""
        return DTYPES[self.kind].itemsize


class Laid(NamedTuple):
    """A tensor of a storage that is read later."""

    stored: Stored
    offset: int
    size: tuple[int, ...]
    stride: tuple[int, ...]


def stored(identity: object) -> Stored:
    """The storage that a persistent id means: ('storage', kind, key, device, count[, (key, start, size) or None]).

    Raises InputError for any other id, and for a part that is not inside the whole.
    """
    if not isinstance(identity, tuple) or len(identity) not in (5, 6) or identity[0] != "storage":
        raise InputError("it refers to something that is no storage of numbers, which is never loaded")
    _, kind, key, _, count, *view = identity
    if not isinstance(kind, str) or kind not in DTYPES or not isinstance(key, str) or not _whole(count):
        raise InputError("it refers to a storage of no known kind, name or size")
    part = view[0] if view and view[0] is not None else (key, 0, count)
    if not isinstance(part, tuple) or len(part) != 3 or not _whole(*part[1:]) or part[1] + part[2] > count:
        raise InputError(f"storage {key[:60]!r} must hold the parts of it; one reaches outside")
    return Stored(kind, key, count, part[1], part[2])


def laid(held: object, offset: object, size: object, stride: object, *more: object) -> Laid:
    """A tensor as torch's pickles make it. Raises InputError when it is not inside its storage.

    more: requires_grad and hooks, which weights do not need, and marks of conjugate views, which must not be there.
    """
    if not isinstance(held, Stored) or not isinstance(size, tuple) or not isinstance(stride, tuple):
        raise InputError("it holds a tensor without a storage or a shape")
    sound = _whole(offset, *size, *stride) and len(size) == len(stride) <= _DIMENSIONS
    if not sound or more[2:] not in ((), (None,), ({},)):
        raise InputError("it holds a tensor whose shape is no list of whole numbers from 0 on")
    last = sum((n - 1) * step for n, step in zip(size, stride, strict=True)) if math.prod(size) else -1
    if offset + last >= held.size or math.prod(size) > held.size:  # type: ignore[operator]
        raise InputError(f"storage {held.key[:60]!r} must hold its tensors; one of shape {size[:8]} reaches outside")
    return Laid(held, offset, size, stride)  # type: ignore[arg-type]


def parameter(data: object, *_: object) -> Laid:
    """What a parameter holds. Raises InputError when it is no tensor."""
    if not isinstance(data, Laid):
        raise InputError("it holds a parameter that is no tensor")
    return data


def tensor(where: Laid, raw: bytearray) -> Tensor:
    """The tensor in the bytes of its storage, which it shares. Raises InputError when they are too few."""
    held = where.stored
    if len(raw) < held.total * held.width:
        raise InputError(f"storage {held.key[:60]!r} must be of {held.total * held.width} bytes; got {len(raw)}")
    dtype = DTYPES[held.kind]
    if not math.prod(where.size):
        return torch.empty(where.size, dtype=dtype)
    read = torch.uint8 if dtype is torch.bool else dtype
    rows = torch.frombuffer(raw, dtype=read, count=held.size, offset=held.start * held.width)
    part = rows.as_strided(where.size, where.stride, where.offset)
    return part != 0 if dtype is torch.bool else part


def _whole(*numbers: object) -> bool:
    return all(type(number) is int and 0 <= number < 1 << 62 for number in numbers)
