"""Index a tar file, so that its members can be read in any order."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from lossscope.errors import InputError
from lossscope.io.file_states import FileState, unchanged_since
from lossscope.io.reading import explain_failure

_BLOCK = 512


class _Size(NamedTuple):
    st_size: int


@dataclass(frozen=True)
class TarMember:
    """A file in an uncompressed tar; it has the methods open, read and stat of a Path."""

    shard: Path  # the tar file
    name: str
    offset: int  # first byte of the content in the tar
    size: int  # in bytes
    state: FileState  # of the tar when it was indexed

    def __str__(self) -> str:
        return f"{self.shard}:{self.name}"

    def open(self, mode: Literal["rb"] = "rb") -> io.BytesIO:
        """Return a stream of its bytes."""
        return io.BytesIO(self.read())

    def read(self) -> bytes:
        """Return its bytes. Raises InputError when the tar is no longer what it was when it was indexed."""
        with unchanged_since(self.state), open(self.shard, "rb") as file:
            file.seek(self.offset)
            return file.read(self.size)

    def stat(self) -> _Size:
        """Return what is known without reading: st_size."""
        return _Size(self.size)


def list_members(shard: Path) -> Iterator[TarMember]:
    """Yield the plain files of a tar, in its order; headers are read, contents skipped.

    Raises InputError when it is missing, compressed, cut off, or no tar.
    """
    state = FileState.of(shard)
    size = state.size
    try:
        with tarfile.open(shard, "r:") as tar:
            for item in tar:
                _require_plain(shard, item)
                if item.isreg():
                    _require_inside(shard, item, size)
                    yield TarMember(shard, item.name, item.offset_data, item.size, state)
            end = tar.offset
    except InputError:
        raise
    except (OSError, MemoryError) as problem:
        raise InputError(explain_failure(shard, "a whole tar", problem, "Fetch it again")) from problem
    except Exception as problem:  # a damaged header can raise anything
        advice = "fetch it again if it is cut off, unpack it with gunzip if it is compressed"
        raise InputError(f"{shard} must be a whole tar, not compressed; got {problem}: {advice}") from None
    with open(shard, "rb") as file:
        file.seek(end)
        if file.read(_BLOCK) != bytes(_BLOCK):
            raise InputError(
                f"{shard} must be a whole tar, its end mark at byte {end} of {size}; got none: fetch it again"
            )


def _require_plain(shard: Path, item: tarfile.TarInfo) -> None:
    """Raise InputError for anything in a tar but files and folders: links, devices, and files with holes."""
    if not (item.isdir() or item.isreg()) or item.issparse():
        raise InputError(f"{shard} must hold plain files; {item.name[:60]!a} in it is a link, a device or sparse")


def _require_inside(shard: Path, item: tarfile.TarInfo, size: int) -> None:
    """Raise InputError when a file of a tar does not lie inside of it."""
    if item.size < 0 or item.offset_data + item.size > size:
        raise InputError(f"{shard} must be a whole tar; {item.name[:60]!a} in it ends behind it: fetch it again")
