"""Write files atomically, read them without running code that is in them, and fingerprint their content."""

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
    """Yield the path of a temporary file beside `path`; on success it replaces `path`, on failure it is removed.

    The temporary file is synced before it is renamed, so that a reader sees the old file or the new one, never half of
    one, even when the process is killed. Missing parent folders are made. Raises InputError when `path` is a folder.
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
    """Write `text` as UTF-8, atomically."""
    with write_atomically(path) as part:
        part.write_text(text, encoding="utf-8")


def fingerprint(path: Path | str) -> str:
    """Return the SHA-256 of a file's bytes, in hex."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fingerprint_of(*parts: bytes | str) -> str:
    """Return the SHA-256 over parts, each preceded by its length, so that moving a boundary changes it."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


_PYTHON_2_OPCODES = r"Unsupported operand (73|76|83|84)\b"  # torch's words for INT, LONG, STRING and BINSTRING


def read_torch(path: Path | str, inert: Sequence[tuple[type, str]] = ()) -> Any:
    """Read a `.pt` file with weights_only: tensors and plain containers, never code.

    Args:
        path: the file.
        inert: (class of ours without behaviour, name of the class in the file) for other objects a file may contain.

    Raises:
        InputError: no such file, a folder, empty, cut off, not a torch file, or a pickle of other objects.
    """
    import torch

    path = require_torch_file(path)
    try:
        # a newer pickle protocol only warns; the file is then read or refused
        with warnings.catch_warnings(action="ignore"), torch.serialization.safe_globals(list(inert)):
            return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        if re.search(_PYTHON_2_OPCODES, str(error)):
            what = "it has texts or numbers as Python 2 wrote them; convert it with --old-pickle"
            raise InputError(f"{path} must hold plain data of Python 3; {what}") from error
        match = re.search(r"GLOBAL ([\w.]+)", str(error))
        what = f"it holds {match[1]} objects" if match else "it is damaged, or holds objects of other kinds"
        raise InputError(
            f"{path} must hold plain data; {what}, which are never loaded because that runs code"
        ) from error
    except InputError as error:  # raised by an inert class that the file misuses
        raise InputError(f"{path} must hold plain data; {error}") from error
    except Exception as error:  # a damaged pickle can raise anything
        raise InputError(f"{path} must be a whole torch file; it is cut off or damaged. Copy it again") from error


def require_torch_file(path: Path | str) -> Path:
    """Return the path of a file that begins as a torch file does.

    Raises InputError when there is no such file, for a folder, an empty file, and a file of another format.
    """
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
    """Read the named tensors of a `.safetensors` file, or of a `.pt` dict of tensors (also under `state_dict`).

    Raises InputError where `read_safetensors` and `read_torch` do, and for a `.pt` file of anything else.
    """
    import torch

    path = require_file(path)
    if path.suffix == ".safetensors":
        return read_safetensors(path)
    content = read_torch(path)
    if isinstance(content, dict) and isinstance(content.get("state_dict"), dict):
        content = content["state_dict"]
    if not isinstance(content, dict) or not all(isinstance(v, torch.Tensor) for v in content.values()):
        raise InputError(f"{path} must hold a dict of tensors; got {type(content).__name__}")
    return content


def read_safetensors(path: Path | str) -> dict[str, Tensor]:
    """Read the named tensors of a `.safetensors` file. Raises InputError when it is missing or damaged."""
    import safetensors
    import safetensors.torch

    path = require_file(path)
    try:
        return safetensors.torch.load_file(path)
    except (safetensors.SafetensorError, OSError) as error:
        raise InputError(f"{path} must be a whole safetensors file; {error}") from error


def require_file(path: Path | str) -> Path:
    """Return the path with `~` expanded. Raises InputError unless it is an existing file."""
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
