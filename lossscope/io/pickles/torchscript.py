"""The tensors of a TorchScript archive by name, read without its program."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch import Tensor

from lossscope.errors import InputError
from lossscope.io.files import require_file
from lossscope.io.json_files import shorten

from .allow_list import SCRIPT_PROGRAM, script_globals
from .stubs import ConfigStub
from .torch_storages import StorageRef, TensorRef, parse_storage_id, read_tensor
from .torch_zip import TorchZip, open_torch_zip
from .unpickler import RestrictedUnpickler

_MAX_DEPTH = 64
_MAX_PARTS = 1 << 16  # modules and tensors
_MAX_NAME = 1 << 10  # letters of a dotted name


def read_torchscript(path: Path) -> dict[str, Tensor]:
    """Return the tensors of the module in an archive, under the names that its state dict has.

    The program is not read: objects of its classes are kept as their attributes. Raises InputError when the archive is
    damaged, or holds anything but modules, tensors and plain values.
    """
    path = require_file(path)
    try:
        with open(path, "rb") as file, open_torch_zip(file) as container:
            return _read(container)
    except InputError as error:
        raise InputError(f"{path} must hold plain data beside its program; {error}") from None
    except Exception as error:  # a damaged archive can raise anything
        raise InputError(f"{path} must be a whole TorchScript archive; it is damaged. Copy it again") from error


class _ProgramUnpickler(RestrictedUnpickler):
    """A restricted unpickler to which every class of the archive's own program is an inert stand-in."""

    def find_class(self, module: str, name: str) -> Any:
        if module == SCRIPT_PROGRAM or module.startswith(f"{SCRIPT_PROGRAM}."):
            return ConfigStub
        return super().find_class(module, name)


def _read(container: TorchZip) -> dict[str, Tensor]:
    refusal = "it holds {name}, which is never loaded"
    module = _ProgramUnpickler(container.read_pickle(), script_globals(), refusal, parse_storage_id).load()
    raw: dict[str, bytearray] = {}
    return {name: _build(ref, container, raw) for name, ref in _named_tensors(module)}


def _build(ref: TensorRef, container: TorchZip, raw: dict[str, bytearray]) -> Tensor:
    """Return a tensor; the bytes of a storage are read once."""
    storage: StorageRef = ref.storage
    if storage.key not in raw:
        raw[storage.key] = container.read_storage(storage.key)
    return read_tensor(ref, raw[storage.key])


def _named_tensors(module: Any) -> Iterator[tuple[str, TensorRef]]:
    """Yield the tensors among the attributes of a module and of the modules in it, by dotted name.

    Raises InputError for a module in two places, and for more modules, tensors or letters in a name than models have.
    """
    if not isinstance(module, ConfigStub):
        raise InputError(f"it holds no module but {type(module).__name__}")
    waiting, met, parts = [("", module)], {id(module)}, 0
    while waiting:
        prefix, owner = waiting.pop()
        for key, value in owner.attributes.items():
            if not isinstance(value, TensorRef | ConfigStub):
                continue
            name, parts = f"{prefix}{key}", parts + 1
            _require_ordinary(name, parts)
            if isinstance(value, TensorRef):
                yield name, value
            elif id(value) in met:
                raise InputError(f"its modules must be in one place each; {shorten(name)} is in two")
            else:
                met.add(id(value))
                waiting.append((f"{name}.", value))


def _require_ordinary(name: str, parts: int) -> None:
    """Raise InputError when a name is longer, or parts are more, than those of any model."""
    if parts > _MAX_PARTS:
        raise InputError(f"its modules and tensors must be at most {_MAX_PARTS}; they are more")
    if len(name) > _MAX_NAME or name.count(".") > _MAX_DEPTH:
        raise InputError(
            f"its names must be of at most {_MAX_NAME} letters and {_MAX_DEPTH} dots; {shorten(name)} is not"
        )
