"""What is where in a tar file, so that a member can be read at once, in any order."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from lossscope.errors import InputError

_BLOCK = 512


class _Size(NamedTuple):
    st_size: int


@dataclass(frozen=True)
class TarMember:
    """A file inside an uncompressed tar: `size` bytes from `offset`. It opens as a Path does."""

    shard: Path
    name: str
    offset: int
    size: int

    def __str__(self) -> str:
        return f"{self.shard}:{self.name}"

    def open(self, mode: Literal["rb"] = "rb") -> io.BytesIO:
        """Its bytes."""
        return io.BytesIO(self.read())

    def read(self) -> bytes:
        """Its bytes. Raises OSError when the shard has gone, EOFError when it has become shorter."""
        with open(self.shard, "rb") as file:
            file.seek(self.offset)
            found = file.read(self.size)
        if len(found) != self.size:
            raise EOFError(f"{self.size - len(found)} bytes less than the index says")
        return found

    def stat(self) -> _Size:
        """What is known of it without reading: st_size."""
        return _Size(self.size)


def members(shard: Path) -> Iterator[TarMember]:
    """The plain files of a tar, in its order; headers are read, contents skipped.

    Raises InputError when it is missing, compressed, cut off, or no tar.
    """
    try:
        with tarfile.open(shard, "r:") as tar:
            for item in tar:
                if item.isreg() and not item.issparse():
                    yield TarMember(shard, item.name, item.offset_data, item.size)
            end = tar.offset
    except OSError as problem:
        raise InputError(f"{shard} must be a readable tar; got {problem.strerror}: check the path") from None
    except (tarfile.TarError, EOFError) as problem:
        advice = "fetch it again if it is cut off, unpack it with gunzip if it is compressed"
        raise InputError(f"{shard} must be a whole tar, not compressed; got {problem}: {advice}") from None
    with open(shard, "rb") as file:
        file.seek(end)
        if file.read(_BLOCK) != bytes(_BLOCK):
            size = shard.stat().st_size
            raise InputError(
                f"{shard} must be a whole tar, its end mark at byte {end} of {size}; got none: fetch it again"
            )
