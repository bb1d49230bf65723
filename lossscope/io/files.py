"""Write files atomically, read them without running code that is in them, and fingerprint their content."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import pickle
import re
import stat
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lossscope.errors import InputError

from .digests import digests_of
from .reading import explain_failure, lacks_memory, naming, show_path
from .temporary_files import sync_file, sync_folder, temporary_file
from .torch_checks import checked_torch_file, require_ordinary, require_ordinary_numbers
from .write_errors import explain_write_errors
from .zip_members import DamagedMember

if TYPE_CHECKING:
    from torch import Tensor


_DIGEST = "lossscope.digest"  # key in the metadata of a .safetensors file


@contextlib.contextmanager
def write_atomically(path: Path | str) -> Iterator[Path]:
    """Yield the path of a temporary file beside `path`; on success it replaces `path`, on failure it is removed.

    The temporary file is synced before it is renamed, so that a reader sees the old file or the new one, never half of
    one, even when the process is killed. Missing parent folders are made, and what a killed writer of the same file
    left is removed. Raises InputError when `path` is a folder, WriteError when the system cannot write it.

    The file itself must be filled: another one in its place, as some libraries rename it, or as a library makes it
    while somebody removes the folder, would be nobody's when the process is killed, and is a WriteError.
    """
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path} must be the name of a file; there is a folder. Choose another name")
    with contextlib.ExitStack() as stack:
        with explain_write_errors(path, any_name=True):
            part = stack.enter_context(temporary_file(path))
        with explain_write_errors(path, part):
            held = part.stat().st_ino
            yield part
            if part.stat().st_ino != held:
                raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), str(part))
            sync_file(part)
            part.chmod(0o666 & ~_umask())
            part.replace(path)
            sync_folder(path.parent)


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
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


_PYTHON_2_OPCODES = r"Unsupported operand (73|76|83|84)\b"  # torch's words for INT, LONG, STRING and BINSTRING
_PROTOCOL_4_OPCODES = r"Unsupported operand (14[0-9]|15[0-2])\b"  # those that protocols 4 and 5 brought
_MAGIC = (0x1950A86A20F9469CFC6C).to_bytes(10, "little")  # at the start of a torch file that is no zip


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
        with (
            warnings.catch_warnings(action="ignore"),
            torch.serialization.safe_globals(list(inert)),
            checked_torch_file(path),
            torch.sparse.check_sparse_tensor_invariants(True),  # type: ignore[no-untyped-call]  # damaged ones could crash
        ):
            content = torch.load(path, map_location="cpu", weights_only=True)
        require_ordinary(content)
        return content
    except pickle.UnpicklingError as error:
        if re.search(_PYTHON_2_OPCODES, str(error)):
            what = "it has texts or numbers as Python 2 wrote them; convert it with --old-pickle"
            raise InputError(f"{path} must hold plain data of Python 3; {what}") from error
        if re.search(_PROTOCOL_4_OPCODES, str(error)) and _is_torch_file(path):
            what = "torch reads no pickles of protocol 4 or 5 safely, but lossscope does"
            raise InputError(
                f"{path} must hold a pickle of protocol 2; {what}: lossscope convert {path} OUT.pt --old-pickle"
            ) from error
        match = re.search(r"GLOBAL ([\w.]+)", str(error))
        what = f"it holds {match[1]} objects" if match else "it is damaged, or holds objects of other kinds"
        raise InputError(
            f"{path} must hold plain data; {what}, which are never loaded because that runs code"
        ) from error
    except DamagedMember as error:
        raise InputError(f"{path} must be a whole torch file; {error}. Copy it again") from error
    except InputError as error:  # raised by an inert class that the file misuses, and by what exceeds the limits
        raise InputError(f"{path} must hold plain data; {error}") from error
    except Exception as error:  # a damaged pickle can raise anything
        if lacks_memory(error):
            raise InputError(explain_failure(path, "a whole torch file", error, "")) from error
        raise InputError(f"{path} must be a whole torch file; it is cut off or damaged. Copy it again") from error


def _is_torch_file(path: Path) -> bool:
    """Return whether a file is one of torch's containers, a zip or its older form, and not a pickle of something."""
    with open(path, "rb") as file:
        head = file.read(64)
    return head[:2] == b"PK" or _MAGIC in head


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


def write_safetensors(
    path: Path | str,
    tensors: Mapping[str, Tensor],
    states_digest: bool = True,
    of: str = "",
    facts: Mapping[str, str] | None = None,
) -> None:
    """Write named tensors atomically, with as much memory again: `save_file` would put a file of its own in place.

    Args:
        path: the file.
        tensors: by name.
        states_digest: whether the file states the digest of all, which `read_safetensors` compares.
        of: what the tensors are of; the digest covers it, so a file in the place of another one is refused.
        facts: further entries of the metadata, which the digest does not cover.
    """
    import safetensors.torch

    whole = {name: tensor.contiguous() for name, tensor in tensors.items()}
    metadata = {**(facts or {}), **({_DIGEST: _digest(whole, of)} if states_digest else {})}
    content = safetensors.torch.save(whole, metadata or None)
    with write_atomically(path) as part:
        part.write_bytes(content)


def _digest(tensors: Mapping[str, Tensor], of: str) -> str:
    return digests_of({"": {**tensors, "": of} if of else tensors})[""]


def read_safetensors(path: Path | str, needs_digest: bool = False, of: str = "") -> dict[str, Tensor]:
    """Read the named tensors of a `.safetensors` file.

    Raises InputError when it is missing or damaged, or its tensors are not those of the digest that it states.

    Args:
        path: the file.
        needs_digest: whether one without a digest, which `write_safetensors` did not write, is an error.
        of: what the tensors must be of, the same text as when they were written.
    """
    import safetensors
    import safetensors.torch

    path = require_file(path)
    try:
        with safetensors.safe_open(path, "pt") as file:
            digest = (file.metadata() or {}).get(_DIGEST)
        tensors = safetensors.torch.load_file(path)
    except safetensors.SafetensorError as error:
        raise InputError(f"{path} must be a whole safetensors file; {error}") from error
    except Exception as error:  # too little memory, an unreadable disk, a dtype that torch lacks
        raise InputError(explain_failure(path, "a whole safetensors file", error, "Copy it again")) from error
    with naming(path, "a whole safetensors file"):
        require_ordinary_numbers(tensors.values())
    if needs_digest and digest is None:
        raise InputError(
            f"{path} must state the digest of its tensors; it does not. Remove it: lossscope makes it again"
        )
    if digest is not None and digest != _digest(tensors, of):
        raise InputError(
            f"tensors of {path} must match the digest that the file states; they differ, so damage or a "
            "change came later. Copy it again, or remove it: lossscope makes it again"
        )
    return tensors


def require_file(path: Path | str) -> Path:
    """Return the path with `~` expanded. Raises InputError unless it is an existing file, no pipe and no device."""
    path = Path(path).expanduser()
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:  # a NUL byte in a name is a ValueError
        if isinstance(error, FileNotFoundError | NotADirectoryError):
            raise InputError(f"{show_path(path)} must exist; there is no such file (looked in {Path.cwd()})") from None
        raise InputError(explain_failure(path, "a file", error, "Check the path")) from error
    if stat.S_ISDIR(mode):
        raise InputError(f"{show_path(path)} must be a file; it is a folder")
    if not stat.S_ISREG(mode):
        raise InputError(f"{show_path(path)} must be an ordinary file; it is a pipe, a socket or a device")
    return path


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
