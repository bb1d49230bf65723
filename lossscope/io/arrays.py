"""Read .npy files and the arrays of .npz files: a header is compared with the file before anything is allocated."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
import numpy.typing as npt

from lossscope.errors import InputError

from .exact_texts import IN_ARRAYS
from .file_states import FileState, note_mapped
from .files import require_file
from .reading import reading, show_path
from .zip_members import require_plain_members

_KINDS = "biufcSU"  # booleans, numbers and texts
_MAX_DIMENSIONS = 32
_LAST_LETTER, _HALVES = 0x10FFFF, (0xD800, 0xDFFF)  # of Unicode, and halves of surrogate pairs
_CHUNK = 1 << 20  # bytes
LARGE = 1 << 30  # bytes from which an array stays on disk


@dataclass(frozen=True)
class NpyHeader:
    """What the beginning of a .npy file says of its array."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fortran: bool  # whether columns, not rows, follow each other
    start: int  # byte at which the numbers begin

    @property
    def bytes(self) -> int:
        """Bytes of the numbers."""
        return math.prod(self.shape) * self.dtype.itemsize


def open_npy(path: Path | str, mode: Literal["r", "c"] = "r") -> npt.NDArray[Any]:
    """Return the array of a .npy file, memory-mapped: `r` for reading, `c` so that changes stay in memory.

    Raises InputError when the file is missing, damaged, holds objects or records, or is shorter or longer than stated.
    """
    file = require_file(path)
    with reading(file, "a whole .npy file", "Write it again"):
        header = _read_file_header(file)
        order: Literal["C", "F"] = "F" if header.fortran else "C"
        if not header.bytes:
            return np.zeros(header.shape, header.dtype)
        return np.memmap(file, header.dtype, mode, header.start, header.shape, order)


def in_memory_if_small(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a mapped array in memory, where no writer can change it; one of a gigabyte stays mapped and watched."""
    if isinstance(array, np.memmap) and array.nbytes >= LARGE:
        note_mapped(FileState.of(str(array.filename)))
        return array
    return np.array(array)


def read_npy(path: Path | str) -> npt.NDArray[Any]:
    """Return the array of a .npy file. Raises InputError as open_npy does, and for texts that are none."""
    array = np.array(open_npy(path))
    _require_letters(array, show_path(path))
    return array


def read_npz(path: Path | str) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a .npz file by name, each compared with its checksum.

    Raises InputError when the file is missing, damaged, holds objects, records or other files, or an array is not of
    the size that its header states.
    """
    file = require_file(path)
    with reading(file, "a whole .npz file of plain arrays", "Write it again"):
        if not zipfile.is_zipfile(file):
            raise InputError(f"{show_path(file)} must be a whole .npz file; it is no zip archive, or cut off")
        with zipfile.ZipFile(file) as archive:
            members = require_plain_members(archive, file)
            return {_name_of(member, file): _read_member(archive, member, file) for member in members}


def read_npy_header(stream: IO[bytes], where: str, size: int) -> NpyHeader:
    """Return the header at the beginning of a file of `size` bytes.

    Raises InputError for one that is damaged or of other content, or that states another size.
    """
    header = _read_header(stream, where)
    _require_size(header, size, where)
    return header


def _read_file_header(file: Path) -> NpyHeader:
    """Return the header of a file. Raises InputError when the file is not as long as the header states."""
    with open(file, "rb") as stream:
        return read_npy_header(stream, show_path(file), file.stat().st_size)


def _read_header(stream: IO[bytes], where: str) -> NpyHeader:
    """Return the header at the beginning of a stream. Raises InputError for one that is damaged or of other content."""
    try:
        version = np.lib.format.read_magic(stream)
        read: Callable[[IO[bytes]], Any] = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }[version]
        shape, fortran, dtype = read(stream)
    except Exception as error:  # a damaged header can raise anything, MemoryError of Python's parser included
        raise InputError(f"{where} must be a whole .npy file; its header is not readable") from error
    if dtype.kind not in _KINDS or (not dtype.itemsize and math.prod(shape)):
        what = f"plain numbers or texts, not pickled objects or records; got {dtype!s:.60}"
        raise InputError(f"{where} must be a whole .npy file of {what}")
    if len(shape) > _MAX_DIMENSIONS or not all(type(n) is int and n >= 0 for n in shape):
        what = f"with a shape of at most {_MAX_DIMENSIONS} whole numbers >= 0"
        raise InputError(f"{where} must be a whole .npy file {what}; it has none")
    return NpyHeader(shape, dtype, fortran, stream.tell())


def _require_size(header: NpyHeader, size: int, where: str) -> None:
    """Raise InputError unless the numbers after the header are as many as it states."""
    if header.start + header.bytes != size:
        stated = f"{header.dtype} {header.shape}, {header.bytes} bytes"
        got = f"{size - header.start} bytes"
        raise InputError(f"{where} must be a whole .npy file of {stated}, as its header states; got {got}")


def _require_letters(array: npt.NDArray[Any], where: str) -> None:
    """Raise InputError when texts hold numbers that are no letters of Unicode: Python cannot make a text of them."""
    if array.dtype.kind != "U" or not array.size:
        return
    letters = np.ascontiguousarray(array).view(np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
    wrong = (letters > _LAST_LETTER) | ((letters >= _HALVES[0]) & (letters <= _HALVES[1]))
    if bool(wrong.any()):
        raise InputError(
            f"texts of {where} must be of letters of Unicode; it holds the number {int(letters[wrong][0])}"
        )


def _name_of(member: zipfile.ZipInfo, file: Path) -> str:
    if not member.filename.endswith(".npy"):
        raise InputError(f"members of {show_path(file)} must be .npy arrays; got {member.filename[:60]!a}")
    return member.filename.removesuffix(".npy")


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, file: Path) -> npt.NDArray[Any]:
    """Return the array of a member. Raises BadZipFile when its bytes do not have the checksum of the archive."""
    where = f"{member.filename[:60]!a} of {show_path(file)}"
    with reading(where, "as it was written", "Write the file again"), archive.open(member) as stream:
        header = _read_header(stream, where)
        _require_size(header, member.file_size, where)
        content, filled = np.empty(header.bytes, np.uint8), 0
        while part := stream.read(_CHUNK):  # up to the end, where the checksum is compared
            content[filled : filled + len(part)] = np.frombuffer(part, np.uint8)
            filled += len(part)
        if filled != header.bytes:
            raise InputError(f"{where} must hold {header.bytes} bytes of numbers; it holds {filled}")
    array = content.view(header.dtype) if header.bytes else np.zeros(0, header.dtype)
    _require_letters(array, where)
    return array.reshape(header.shape[::-1]).T if header.fortran else array.reshape(header.shape)


def text_array(texts: Iterable[str]) -> npt.NDArray[np.str_]:
    """Return texts as an array, from whose entries `IN_ARRAYS.read` gives them back."""
    return np.array(list(map(IN_ARRAYS.write, texts)), np.str_)
