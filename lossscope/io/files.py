"""How files are written (whole or not at all), read (never running what is in them) and told apart."""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import re
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lossscope.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor


@contextlib.contextmanager
def write_atomically(path: Path | str) -> Iterator[Path]:
    """Yield a temporary name beside `path`; on success it is synced and renamed to `path`, on failure removed.

    A reader therefore sees the old file or the new one, never half of one, whatever kills the process.
    Raises InputError when `path` is a folder.
    """
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path} must be the name of a file; there is a folder. Choose another name")
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    os.close(handle)
    part = Path(name)
    try:
        yield part
        with open(part, "rb") as written:
            os.fsync(written.fileno())
        part.chmod(0o666 & ~_umask())
        part.replace(path)
        _sync_folder(path.parent)
    finally:
        part.unlink(missing_ok=True)


def write_text(path: Path | str, text: str) -> None:
    """Write `text` as UTF-8, whole or not at all."""
    with write_atomically(path) as part:
        part.write_text(text, encoding="utf-8")


def fingerprint(path: Path | str) -> str:
    """SHA-256 of a file's bytes, in hex."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fingerprint_of(*parts: bytes | str) -> str:
    """SHA-256 over parts, each preceded by its length, so that moving a boundary changes the result."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def read_torch(path: Path | str, inert: Sequence[tuple[type, str]] = ()) -> Any:
    """What a `.pt` file holds, read with weights_only: tensors and plain containers, never code.

    inert: (our class that does nothing, the name that the file has for it), for objects that a file may hold beside.
    Raises InputError: no such file, a folder, empty, cut off, not a torch file, or a pickle of other objects.
    """
    import torch

    path = torch_file(path)
    try:
        # warnings of a newer pickle protocol: then it is read or refused
        with warnings.catch_warnings(action="ignore"), torch.serialization.safe_globals(list(inert)):
            return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        found = re.search(r"GLOBAL ([\w.]+)", str(error))
        what = f"it holds {found[1]} objects" if found else "it is damaged, or holds objects of other kinds"
        raise InputError(
            f"{path} must hold plain data; {what}, which are never loaded because that runs code"
        ) from error
    except InputError as error:  # of a stand-in that the file asks too much of
        raise InputError(f"{path} must hold plain data; {error}") from error
    except Exception as error:  # a damaged pickle fails in any way it likes
        raise InputError(f"{path} must be a whole torch file; it is cut off or damaged. Copy it again") from error


def torch_file(path: Path | str) -> Path:
    """The path of a file that begins as torch's do. Raises InputError: none there, a folder, empty, something else."""
    path = require_file(path)
    with open(path, "rb") as file:
        head = file.read(4)
    if not head:
        raise InputError(f"{path} must be a torch file; it is empty")
    zipped = head == b"PK\x03\x04"
    if not zipped and head[:1] != b"\x80":
        raise InputError(f"{path} must be a torch file; it starts with {head!r}, which is neither a zip nor a pickle")
    return path


def read_tensors(path: Path | str) -> dict[str, Tensor]:
    """Named tensors of a `.safetensors` file, or of a `.pt` dict of tensors (also under `state_dict`)."""
    import torch

    path = require_file(path)
    if path.suffix == ".safetensors":
        return read_safetensors(path)
    found = read_torch(path)
    if isinstance(found, dict) and isinstance(found.get("state_dict"), dict):
        found = found["state_dict"]
    if not isinstance(found, dict) or not all(isinstance(v, torch.Tensor) for v in found.values()):
        raise InputError(f"{path} must hold a dict of tensors; got {type(found).__name__}")
    return found


def read_safetensors(path: Path | str) -> dict[str, Tensor]:
    """Named tensors of a `.safetensors` file. Raises InputError when it is damaged."""
    import safetensors
    import safetensors.torch

    path = require_file(path)
    try:
        return safetensors.torch.load_file(path)
    except (safetensors.SafetensorError, OSError) as error:
        raise InputError(f"{path} must be a whole safetensors file; {error}") from error


def require_file(path: Path | str) -> Path:
    """The path, which must be a file. Raises InputError saying what is there instead."""
    path = Path(path).expanduser()
    if path.is_dir():
        raise InputError(f"{path} must be a file; it is a folder")
    if not path.exists():
        raise InputError(f"{path} must exist; there is no such file (looked in {Path.cwd()})")
    return path


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
