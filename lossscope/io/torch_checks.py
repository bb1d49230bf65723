"""Checks of a torch file beside and after torch's own reader: checksums, opcodes, and what its tensors state."""

from __future__ import annotations

import contextlib
import mmap
import pickle
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lossscope.errors import InputError

from .limits import require_bounded, walk_leaves
from .pickles.opcode_limits import require_buildable
from .zip_members import read_unchecked, verified_members

if TYPE_CHECKING:
    from torch import Tensor

_ZIP = b"PK\x03\x04"
_MAX_RATIO = 16  # of the sizes of all members to the size of the file; torch writes them as they are
_MAX_PICKLE = 1 << 30  # bytes of the pickle in a zip, whose numbers lie beside it
_LEGACY_PICKLES = 5  # at the beginning of a file that is no zip: magic number, protocol, system, object, keys
_ORDINARY = frozenset({
    "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
})  # fmt: skip
_MAX_EMPTY = 1 << 26  # rows of a tensor without numbers
_MAX_STRETCHED = 1 << 26  # numbers of all tensors that have more numbers than their storage holds


@contextlib.contextmanager
def checked_torch_file(path: Path) -> Iterator[None]:
    """Check a file while the caller reads it: first its pickles, and beside the caller the checksums of a zip.

    Raises InputError for a pickle beyond the limits, DamagedMember for a member that differs from its checksum, and
    BadZipFile or UnpicklingError for a damaged file.
    """
    with open(path, "rb") as file:
        zipped = file.read(len(_ZIP)) == _ZIP  # as torch decides
    if zipped:
        with verified_members(path):
            _check_zip(path)
            yield
    else:
        _check_legacy(path)
        yield


def require_ordinary(content: Any) -> None:
    """Raise InputError when a file's content expands without end, or its tensors are not numbers that it holds."""
    import torch

    require_bounded(content)
    tensors = [leaf for leaf in walk_leaves(content) if isinstance(leaf, torch.Tensor)]
    for tensor in tensors:
        _require_dense(tensor)
    require_ordinary_numbers(tensors)
    stretched = sum(map(_stretched_numbers, tensors))
    if stretched > _MAX_STRETCHED:
        raise InputError(f"its tensors state {stretched} numbers that the file does not hold")


def require_ordinary_numbers(tensors: Iterable[Tensor]) -> None:
    """Raise InputError for a type with which torch cannot count, such as floats of eight bits, and endless shapes.

    A shape of 2^60 rows of nothing needs no byte of a file, and more memory than there is wherever rows are numbered.
    """
    for tensor in tensors:
        if not tensor.numel() and max(tensor.shape, default=0) > _MAX_EMPTY:
            raise InputError(f"its tensors must hold numbers; one is of shape {tuple(tensor.shape)[:8]}, of none")
        if str(tensor.dtype).removeprefix("torch.") not in _ORDINARY:
            raise InputError(f"its tensors must be of ordinary numbers; one is {tensor.dtype}. Save it as float32")


def _require_dense(tensor: Tensor) -> None:
    """Raise InputError for a tensor that does not hold a number for each place: sparse, nested, without data."""
    import torch

    if tensor.layout is not torch.strided or tensor.device.type != "cpu" or tensor.is_quantized or tensor.is_nested:
        kind = "quantised" if tensor.is_quantized else "nested" if tensor.is_nested else str(tensor.layout)
        raise InputError(f"its tensors must hold all their numbers; one is {kind} on {tensor.device}. Save it dense")


def _stretched_numbers(tensor: Tensor) -> int:
    """Return the numbers of a tensor that repeats those of its storage, 0 for any other."""
    held = tensor.untyped_storage().nbytes() // tensor.element_size()
    return tensor.numel() if tensor.numel() > held else 0


def _check_zip(path: Path) -> None:
    """Raise InputError for members that are far larger than the file, and for a pickle beyond the limits."""
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        if sum(member.file_size for member in members) > _MAX_RATIO * path.stat().st_size:
            raise InputError("its parts must lie in it uncompressed; they are far larger than the file")
        for member in members:
            if member.filename.lower().endswith("data.pkl"):
                if member.file_size > _MAX_PICKLE:
                    raise InputError(f"its pickle must be of at most {_MAX_PICKLE} bytes; got {member.file_size}")
                require_buildable(read_unchecked(path, member))


def _check_legacy(path: Path) -> None:
    """Raise InputError for pickles beyond the limits at the beginning of a file, and for a tar archive."""
    with contextlib.suppress(tarfile.TarError, EOFError), tarfile.open(path, "r:"):
        raise InputError("it is a tar archive, as torch before 0.1.10 wrote. Save it again with a newer torch")
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        offset = 0
        for _ in range(_LEGACY_PICKLES):
            if offset:
                with contextlib.suppress(pickle.UnpicklingError):  # torch says of what kind the file is
                    offset = require_buildable(content, offset)
            else:
                offset = require_buildable(content)
