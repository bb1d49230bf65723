"""The tensors of a TorchScript archive by name, read without its program."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from lossscope.errors import InputError

from .callables import Constructor, PlainOrderedDict
from .stubs import ConfigStub
from .torch_storages import DTYPES, StorageRef, TensorRef, build_tensor_ref, parse_storage_id, read_tensor
from .unpickler import Globals, RestrictedUnpickler

_MAX_DEPTH = 64
_MAX_MODULES = 1 << 16
_PROGRAM = "__torch__"  # the module of every class that the archive's program defines
_PARTS = ("constants.pkl", "data.pkl")
_GLOBALS: Globals = {
    **{("torch", name): name for name in DTYPES},
    ("collections", "OrderedDict"): Constructor(PlainOrderedDict),
    ("torch._utils", "_rebuild_tensor_v2"): Constructor(build_tensor_ref),
    **{("torch.jit._pickle", f"build_{kind}list"): Constructor(list) for kind in ("int", "double", "bool", "tensor")},
    ("torch.jit._pickle", "restore_type_tag"): Constructor(lambda value, kind: value),
}


def is_torchscript(path: Path) -> bool:
    """Return whether a file is what torch.jit.save writes: a zip with a program beside data.pkl."""
    try:
        with zipfile.ZipFile(path) as archive:
            parts = [name.split("/") for name in archive.namelist()]
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError):
        return False
    return all(any(part[-1] == name and len(part) == 2 for part in parts) for name in _PARTS)


def read_torchscript(path: Path) -> dict[str, Tensor]:
    """Return the tensors of the module in an archive, under the names that its state dict has.

    The program is not read: objects of its classes are kept as their attributes. Raises InputError when the archive is
    damaged, or holds anything but modules, tensors and plain values.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return _read(archive)
    except InputError as error:
        raise InputError(f"{path} must hold plain data beside its program; {error}") from None
    except Exception as error:  # a damaged archive can raise anything
        raise InputError(f"{path} must be a whole TorchScript archive; it is damaged. Copy it again") from error


class _ProgramUnpickler(RestrictedUnpickler):
    """A restricted unpickler to which every class of the archive's own program is an inert stand-in."""

    def find_class(self, module: str, name: str) -> Any:
        if module == _PROGRAM or module.startswith(f"{_PROGRAM}."):
            return ConfigStub
        return super().find_class(module, name)


def _read(archive: zipfile.ZipFile) -> dict[str, Tensor]:
    entries = {entry.filename: entry for entry in archive.infolist()}
    stem = next(name for name in entries if name.endswith("/data.pkl"))[: -len("data.pkl")]
    parts = [entry for name, entry in entries.items() if name.startswith((f"{stem}data.pkl", f"{stem}data/"))]
    size = archive.fp.seek(0, io.SEEK_END) if archive.fp else 0
    if any(part.compress_type for part in parts) or sum(part.file_size for part in parts) > size:
        raise InputError("its tensors must lie in it uncompressed, one after the other; they do not")
    if f"{stem}byteorder" in entries and archive.read(f"{stem}byteorder") != b"little":
        raise InputError("its numbers must be written with the lowest byte first; they are not")
    content = io.BytesIO(archive.read(f"{stem}data.pkl"))
    module = _ProgramUnpickler(content, _GLOBALS, "it holds {name}, which is never loaded", parse_storage_id).load()
    raw: dict[str, bytearray] = {}
    return {name: _build(ref, archive, stem, raw) for name, ref in _named_tensors(module)}


def _build(ref: TensorRef, archive: zipfile.ZipFile, stem: str, raw: dict[str, bytearray]) -> Tensor:
    """Return a tensor; the bytes of a storage are read once."""
    storage: StorageRef = ref.storage
    if storage.key not in raw:
        raw[storage.key] = bytearray(archive.read(f"{stem}data/{storage.key}"))
    return read_tensor(ref, raw[storage.key])


def _named_tensors(module: Any) -> Iterator[tuple[str, TensorRef]]:
    """Yield the tensors among the attributes of a module and of the modules in it, by dotted name."""
    if not isinstance(module, ConfigStub):
        raise InputError(f"it holds no module but {type(module).__name__}")
    waiting, visited = [("", 0, module)], 0
    while waiting:
        prefix, depth, part = waiting.pop()
        visited += 1
        if depth > _MAX_DEPTH or visited > _MAX_MODULES:
            raise InputError(f"its modules must be at most {_MAX_MODULES}, nested {_MAX_DEPTH} deep; they are more")
        attributes: Mapping[Any, Any] = part.attributes
        for name, value in attributes.items():
            if isinstance(value, TensorRef):
                yield f"{prefix}{name}", value
            elif isinstance(value, ConfigStub):
                waiting.append((f"{prefix}{name}.", depth + 1, value))
