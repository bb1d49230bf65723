"""Torch files read without torch's own unpickler, for those of Python 2: zip and legacy containers, no code run."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import IO, Any

from lossscope.errors import InputError

from ..files import require_torch_file
from .allow_list import torch_globals
from .stubs import to_plain
from .torch_storages import (
    StorageRef,
    TensorRef,
    parse_storage_id,
    read_tensor,
)
from .torch_zip import is_torchscript, open_torch_zip, require_little_endian
from .unpickler import RestrictedUnpickler

_MAGIC, _PROTOCOL = 0x1950A86A20F9469CFC6C, 1001
_NEVER_RUN = "which is never loaded because that runs code"
_StorageBytes = dict[str, bytearray]


def read_legacy_torch(path: Path | str) -> dict[Any, Any]:
    """Return the dict that a torch file holds, also one with the texts and long numbers of Python 2.

    Tensors, plain containers and, for configurations, dicts are built; any other global in the file is an error.
    Raises InputError when it is no torch file, damaged, a program, or holds objects that are not data.
    """
    path = require_torch_file(path)
    refuse_torchscript(path)
    try:
        with open(path, "rb") as file:
            is_zip = file.peek(2)[:2] == b"PK"
            content, storages = _read_zip(file) if is_zip else _read_legacy(file)
        read = to_plain(
            content, lambda leaf: read_tensor(leaf, storages[leaf.storage.key]) if isinstance(leaf, TensorRef) else leaf
        )
    except InputError as error:
        raise InputError(f"{path} must hold plain data; {error}") from None
    except Exception as error:  # a damaged pickle can raise anything
        raise InputError(f"{path} must be a whole torch file; it is cut off or damaged. Copy it again") from error
    if not isinstance(read, dict):
        raise InputError(f"{path} must hold a checkpoint; it holds {type(content).__name__}")
    return read


def refuse_torchscript(path: Path) -> None:
    """Raise InputError when a file is a TorchScript archive."""
    if is_torchscript(path):
        what = f"it is a TorchScript program, {_NEVER_RUN}. Save its state_dict with torch.save"
        raise InputError(f"{path} must hold plain data; {what}")


class _Storages:
    """The storages that the pickle of weights refers to, by key."""

    def __init__(self) -> None:
        self.by_key: dict[str, StorageRef] = {}

    def add(self, identity: Any) -> StorageRef:
        """Return the storage of a persistent id. Raises InputError when two ids give one key two kinds or sizes."""
        storage = parse_storage_id(identity)
        first = self.by_key.setdefault(storage.key, storage)
        if (first.kind, first.total) != (storage.kind, storage.total):
            raise InputError(f"storage {storage.key[:60]!r} must be of one kind and size; the file gives it two")
        return storage


def _load(file: IO[bytes], storages: _Storages | None = None) -> Any:
    """Return what the pickle that begins at the position of `file` holds, its storages added to `storages`."""
    add = (storages or _Storages()).add
    return RestrictedUnpickler(file, torch_globals(), f"it holds {{name}}, {_NEVER_RUN}", add).load()


def _read_zip(file: IO[bytes]) -> tuple[Any, _StorageBytes]:
    """Return what `NAME/data.pkl` holds, and the bytes of each storage, `NAME/data/KEY`."""
    with open_torch_zip(file) as container:
        storages = _Storages()
        content = _load(container.read_pickle(), storages)
        return content, {key: container.read_storage(key) for key in storages.by_key}


def _read_legacy(file: IO[bytes]) -> tuple[Any, _StorageBytes]:
    """Return what the fourth pickle in the file holds, and the bytes of each storage, in the order of the fifth."""
    magic, protocol, system = (_load(file) for _ in range(3))
    if (magic, protocol) != (_MAGIC, _PROTOCOL) or not isinstance(system, dict):
        raise ValueError("no torch file")
    require_little_endian(system.get("little_endian", True) is True)
    storages = _Storages()
    content, keys = _load(file, storages), _load(file)
    return content, {key: _read_storage(file, storages.by_key[key]) for key in keys}


def _read_storage(file: IO[bytes], storage: StorageRef) -> bytearray:
    (count,) = struct.unpack("<q", file.read(8))
    here = file.tell()
    left = file.seek(0, io.SEEK_END) - here
    file.seek(here)
    if not 0 <= count * storage.width <= left:
        raise ValueError(f"{count} numbers in {left} bytes")
    return bytearray(file.read(count * storage.width))
