"""The zip container of torch files: `NAME/data.pkl`, its storages `NAME/data/KEY`, and perhaps a program."""

from __future__ import annotations

import contextlib
import io
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from lossscope.errors import InputError

PICKLE = "data.pkl"
_READ = (PICKLE, "data/", "byteorder")  # what is read of a container; its program, which torch packs, is not


def is_torchscript(path: Path) -> bool:
    """Return whether a file is what torch.jit.save writes: a zip with constants.pkl or code/ in its folder."""
    if not path.is_file():  # opening a pipe would wait for its writer
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            parts = [name.split("/") for name in archive.namelist()]
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError):
        return False  # no zip; of one that is damaged the readers say so
    return any(part[1:] == ["constants.pkl"] or (part[1:2] == ["code"] and len(part) > 2) for part in parts)


class TorchZip:
    """The parts of a container that are read here, each uncompressed and, together, no larger than the file.

    Raises InputError for other parts, without a pickle, and for numbers of another byte order.

    Args:
        archive: the container.
        size: of the file.
    """

    def __init__(self, archive: zipfile.ZipFile, size: int) -> None:
        self._archive, self._stem = archive, find_stem(archive)
        starts = tuple(f"{self._stem}{start}" for start in _READ)
        parts = [entry for entry in archive.infolist() if entry.filename.startswith(starts)]
        if any(part.compress_type for part in parts) or sum(part.file_size for part in parts) > size:
            raise InputError("its parts must lie in it uncompressed, one after the other; they do not")
        order = f"{self._stem}byteorder"
        require_little_endian(all(part.filename != order for part in parts) or archive.read(order) == b"little")

    def read_pickle(self) -> IO[bytes]:
        """Return the pickle, which names the storages."""
        return io.BytesIO(self._archive.read(f"{self._stem}{PICKLE}"))

    def read_storage(self, key: str) -> bytearray:
        """Return the bytes of a storage. Raises KeyError when there is none of that name."""
        return bytearray(self._archive.read(f"{self._stem}data/{key}"))


@contextlib.contextmanager
def open_torch_zip(file: IO[bytes]) -> Iterator[TorchZip]:
    """Yield the container in an open file. Raises InputError as TorchZip does."""
    size = file.seek(0, io.SEEK_END)
    with zipfile.ZipFile(file) as archive:
        yield TorchZip(archive, size)


def find_stem(archive: zipfile.ZipFile) -> str:
    """Return the folder of data.pkl as `NAME/`. Raises InputError when no folder of the archive holds one."""
    found = next((name for name in archive.namelist() if name.split("/")[1:] == [PICKLE]), None)
    if found is None:
        raise InputError(f"it must have a folder with {PICKLE}; it has none. Save it again with a newer torch")
    return found.removesuffix(PICKLE)


def require_little_endian(little: bool) -> None:
    """Raise InputError unless numbers are written, and read here, with the lowest byte first."""
    if not little or sys.byteorder != "little":
        raise InputError("its numbers must have the lowest byte first, here and in the file; they do not")
