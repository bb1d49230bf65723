"""Torch files read without torch's own unpickler, for those of Python 2: both containers, and nothing is ever run."""

from __future__ import annotations

import io
import pickle
import struct
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from lossscope.errors import InputError

from ..files import torch_file
from .callables import Maker, Ordered, encoded
from .numpy_arrays import NUMPY
from .stubs import CLASSES, plain
from .torch_storages import DTYPES, Laid, Stored, laid, parameter, stored, tensor

_MAGIC, _PROTOCOL = 0x1950A86A20F9469CFC6C, 1001
_NEVER = "which is never loaded because that runs code"
_KNOWN: Mapping[str, Any] = {
    **CLASSES,
    **{f"{module}.{name}": maker for module, names in NUMPY.items() for name, maker in names.items()},
    **{f"{module}.{name}": name for module in ("torch", "torch.cuda") for name in DTYPES},
    "collections.OrderedDict": Maker(Ordered),
    "_codecs.encode": Maker(encoded),
    "torch._utils._rebuild_tensor": Maker(laid),
    "torch._utils._rebuild_tensor_v2": Maker(laid),
    "torch._utils._rebuild_parameter": Maker(parameter),
}
_Bytes = dict[str, bytearray]


def read_old(path: Path | str) -> dict[Any, Any]:
    """The dict that a torch file holds, by a reader of our own that also knows texts and long numbers of Python 2.

    It makes tensors, plain containers and, of configurations, dicts; any other name in the file is an error.
    Raises InputError: no torch file, damaged, a program, or holding objects that are not data.
    """
    path = torch_file(path)
    refuse_program(path)
    try:
        with open(path, "rb") as file:
            zipped = file.peek(2)[:2] == b"PK"
            found, held = _zipped(file) if zipped else _legacy(file)
        read = plain(found, lambda leaf: tensor(leaf, held[leaf.stored.key]) if isinstance(leaf, Laid) else leaf)
    except InputError as error:
        raise InputError(f"{path} must hold plain data; {error}") from None
    except Exception as error:  # a damaged pickle fails in any way it likes
        raise InputError(f"{path} must be a whole torch file; it is cut off or damaged. Copy it again") from error
    if not isinstance(read, dict):
        raise InputError(f"{path} must hold a checkpoint; it holds {type(found).__name__}")
    return read


def refuse_program(path: Path) -> None:
    """Raise InputError when a file is an archive of TorchScript, which holds a program beside the weights."""
    if not zipfile.is_zipfile(path):
        return
    try:
        with zipfile.ZipFile(path) as archive:
            parts = [name.split("/") for name in archive.namelist()]
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        return  # the reader tells what is damaged
    if any(part[-1] == "constants.pkl" or "code" in part[:-1] for part in parts):
        what = f"it is a TorchScript program, {_NEVER}. Save its state_dict with torch.save"
        raise InputError(f"{path} must hold plain data; {what}")


class _Reader(pickle.Unpickler):
    """Finds what a file of weights needs and nothing else. storages: those it was asked for, by key."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(file, encoding="latin1")
        self.storages: dict[str, Stored] = {}

    def find_class(self, module: str, name: str) -> Any:
        known = _KNOWN.get(f"{module}.{name}")
        if known is None:
            raise InputError(f"it holds {module}.{name}, {_NEVER}")
        return known

    def persistent_load(self, pid: Any) -> Stored:
        found = stored(pid)
        first = self.storages.setdefault(found.key, found)
        if (first.kind, first.total) != (found.kind, found.total):
            raise InputError(f"storage {found.key[:60]!r} must be of one kind and size; it is told to be of two")
        return found


def _zipped(file: IO[bytes]) -> tuple[Any, _Bytes]:
    """What `NAME/data.pkl` holds, and the bytes of each storage, `NAME/data/KEY`."""
    size = file.seek(0, io.SEEK_END)
    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
        if any(entry.compress_type for entry in entries) or sum(entry.file_size for entry in entries) > size:
            raise InputError("its parts must lie in it uncompressed, one after the other; they do not")
        stem = next(entry.filename for entry in entries if entry.filename.endswith("data.pkl"))[: -len("data.pkl")]
        names = {entry.filename for entry in entries}
        _require_order(f"{stem}byteorder" not in names or archive.read(f"{stem}byteorder") == b"little")
        reader = _Reader(io.BytesIO(archive.read(f"{stem}data.pkl")))
        found = reader.load()
        return found, {key: bytearray(archive.read(f"{stem}data/{key}")) for key in reader.storages}


def _legacy(file: IO[bytes]) -> tuple[Any, _Bytes]:
    """The fourth pickle in the file, and the bytes of each storage, in the order that the fifth tells."""
    magic, protocol, system = (_Reader(file).load() for _ in range(3))
    if (magic, protocol) != (_MAGIC, _PROTOCOL) or not isinstance(system, dict):
        raise ValueError("no torch file")
    _require_order(system.get("little_endian", True) is True)
    reader = _Reader(file)
    found, keys = reader.load(), _Reader(file).load()
    return found, {key: _storage(file, reader.storages[key]) for key in keys}


def _storage(file: IO[bytes], what: Stored) -> bytearray:
    (count,) = struct.unpack("<q", file.read(8))
    here = file.tell()
    left = file.seek(0, io.SEEK_END) - here
    file.seek(here)
    if not 0 <= count * what.width <= left:
        raise ValueError(f"{count} numbers in {left} bytes")
    return bytearray(file.read(count * what.width))


def _require_order(little: bool) -> None:
    if not little or sys.byteorder != "little":
        raise InputError("its numbers must be written, and read, with the lowest byte first; they are not")
