"""Event files of TensorBoard: records of a length, its CRC, an event and its CRC; scalars are read of them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from lossscope.errors import InputError, needing

from .files import require_file
from .reading import reading, show_path

_MAX_BYTES = 1 << 31  # of a file
_MAX_SCALARS = 1 << 16  # bytes of an event with scalars; larger ones are pictures and histograms, and passed over
_HEAD, _TAIL = struct.Struct("<QI"), struct.Struct("<I")


class ScalarEvent(NamedTuple):
    """One number of a training."""

    tag: str
    step: int
    value: float


@dataclass(frozen=True)
class Scalars:
    """The numbers of an event file, in its order."""

    events: tuple[ScalarEvent, ...]
    notice: str | None = None  # what is damaged


class _Damaged(Exception):
    """A record is cut off, or is not what was written."""


def is_event_file(path: Path) -> bool:
    """Return whether a file has the name of an event file."""
    return ".tfevents." in f".{path.name}." and path.is_file()


def read_scalars(path: Path) -> Scalars:
    """Return the scalars of an event file; of a damaged one those before the damage, with a notice.

    Args:
        path: the file, of torch, TensorFlow or any other writer.

    Raises:
        InputError: it is missing, holds no whole event, is larger than 2 GiB, or the package tensorboard is missing.
    """
    name, file = show_path(path), require_file(path)
    event_type, checksum = _decoder(name)
    size = file.stat().st_size
    if size > _MAX_BYTES:
        raise InputError(f"{name} must be of at most {_MAX_BYTES} bytes; got {size}. Export its scalars as CSV")
    events: list[ScalarEvent] = []
    count, notice = 0, None
    with reading(path, "a TensorBoard event file"):
        try:
            for record in _records(file, size, checksum):
                events += _scalars_of(event_type, record)
                count += 1
        except _Damaged as damage:
            notice = f"{name} is damaged behind {count} events ({damage}): what stands before is read"
        if not count:
            raise InputError(f"{name} must be a TensorBoard event file; it has no whole event. Copy it again")
    return Scalars(tuple(events), notice)


def _decoder(name: str) -> tuple[Any, Callable[[bytes], int]]:
    """Return the type of events and the checksum. Raises InputError when the package tensorboard is missing."""
    with needing("tb", f"{name} needs tensorboard"):
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c
    return Event, masked_crc32c


def _records(path: Path, size: int, checksum: Callable[[bytes], int]) -> Iterator[bytes]:
    """Yield the events of a file; an empty one in place of each that is too large for scalars."""
    with open(path, "rb") as file:
        while (offset := file.tell()) < size:
            head = file.read(_HEAD.size)
            if len(head) < _HEAD.size:
                raise _Damaged("it is cut off")
            length, stated = _HEAD.unpack(head)
            if checksum(head[:8]) != stated:
                raise _Damaged(f"the record at byte {offset} has another checksum")
            if offset + _HEAD.size + length + _TAIL.size > size:
                raise _Damaged("it is cut off")
            if length > _MAX_SCALARS:
                file.seek(length + _TAIL.size, 1)
                yield b""
                continue
            record = file.read(length)
            if checksum(record) != _TAIL.unpack(file.read(_TAIL.size))[0]:
                raise _Damaged(f"the record at byte {offset} has another checksum")
            yield record


def _scalars_of(event_type: Any, record: bytes) -> Iterator[ScalarEvent]:
    """Yield the scalars of an event, as torch writes them (simple_value) and as TensorFlow does (a tensor)."""
    try:
        event = event_type.FromString(record)
    except Exception as error:  # protobuf's DecodeError, which has no types
        raise _Damaged("an event cannot be decoded") from error
    for value in event.summary.value:
        kind = value.WhichOneof("value")
        number = (
            value.simple_value if kind == "simple_value" else _number_of(value.tensor) if kind == "tensor" else None
        )
        if number is not None:
            yield ScalarEvent(value.tag, event.step, float(number))


def _number_of(tensor: Any) -> float | None:
    """Return the one number of a tensor; None of any other tensor."""
    from tensorboard.compat.tensorflow_stub.dtypes import as_dtype
    from tensorboard.util.tensor_util import make_ndarray

    if any(dim.size != 1 for dim in tensor.tensor_shape.dim) or len(tensor.tensor_shape.dim) > 8:
        return None
    if tensor.dtype not in range(1, 24) or not (
        as_dtype(tensor.dtype).is_floating or as_dtype(tensor.dtype).is_integer
    ):
        return None
    array = make_ndarray(tensor)
    return float(array.reshape(-1)[0]) if array.size == 1 else None
