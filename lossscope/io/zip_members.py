"""The members of a zip archive: plain, each once, no larger than they can be, and with the checksum of the archive."""

from __future__ import annotations

import mmap
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from lossscope.errors import InputError

from .reading import show_path

_MAX_RATIO = 1032  # of the bytes before deflate to those after it
_MAX_MEMBERS = 1 << 20
_LOCAL_HEADER, _NAME_AND_EXTRA = 30, 26  # bytes of a local header, and where in it are the lengths of what follows
_ENCRYPTED = 1
_END_MARK, _END, _TOTAL = b"PK\5\6", 22, 10  # of the end of the central directory: mark, bytes, place of its number
_LONGEST_END = _END + (1 << 16)  # with a comment
_IN_ZIP64 = 0xFFFF
_THREADS = min(4, os.cpu_count() or 1)
_CHUNK = 1 << 20  # bytes


class DamagedMember(InputError):
    """A member of an archive is not as it was written."""


def require_plain_members(archive: zipfile.ZipFile, path: Path) -> list[zipfile.ZipInfo]:
    """Return the members.

    Raises InputError for encrypted or doubled ones, for sizes that cannot be true, and where the list of members is
    shorter than the archive states, as where one entry is damaged so that it takes in the next ones.
    """
    members, name = archive.infolist(), show_path(path)
    stated = _stated_members(path)
    if stated not in (None, len(members)):
        raise InputError(f"{name} must list every member; it states {stated} and lists {len(members)}. Copy it again")
    if len(members) > _MAX_MEMBERS:
        raise InputError(f"{name} must have at most {_MAX_MEMBERS} members; got {len(members)}")
    if len({member.filename for member in members}) < len(members):
        raise InputError(f"members of {name} must have different names; two have the same")
    for member in members:
        most = member.compress_size * (_MAX_RATIO if member.compress_type else 1)
        if member.flag_bits & _ENCRYPTED or member.file_size > most:
            raise InputError(f"{member.filename[:60]!a} of {name} must be plain and of a possible size; it is not")
    if sum(member.compress_size for member in members) > path.stat().st_size:
        raise InputError(f"members of {name} must lie in it one after the other; they are larger than the file")
    return members


def _stated_members(path: Path) -> int | None:
    """Return the number of members that the end of an archive states; None where it is of more than 65534."""
    with open(path, "rb") as file:
        file.seek(max(path.stat().st_size - _LONGEST_END, 0))
        end = file.read()
    start = len(end) - _END  # as zipfile looks for it: at the very end, else the last one
    if end[start : start + len(_END_MARK)] != _END_MARK or end[-2:] != b"\0\0":
        start = end.rfind(_END_MARK)
    if not 0 <= start <= len(end) - _END:
        return None
    number: int = struct.unpack_from("<H", end, start + _TOTAL)[0]
    return None if number == _IN_ZIP64 else number


@contextmanager
def verified_members(path: Path) -> Iterator[None]:
    """Compare the members of a zip archive with its checksums, in threads beside what the caller does meanwhile.

    An archive without any checksum, as torch writes on request, is not compared. Raises DamagedMember, when
    the caller is done, that names the first member that differs.
    """
    with open(path, "rb") as file, zipfile.ZipFile(file) as archive:
        members = require_plain_members(archive, path)
        compared = members if any(member.CRC for member in members) else []
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content, memoryview(content) as view:
            checksums = _Checksums(compared, view)
            try:
                yield
                different = checksums.first_different()
            finally:
                checksums.stop()
    if different is not None:
        raise DamagedMember(f"its part {different[:60]!a} differs from its checksum")


def read_unchecked(path: Path, member: zipfile.ZipInfo) -> bytes:
    """Return the bytes of a member, which are compared with their checksum elsewhere."""
    with open(path, "rb") as file:
        file.seek(member.header_offset + _NAME_AND_EXTRA)
        lengths = struct.unpack("<HH", file.read(4))
        file.seek(member.header_offset + _LOCAL_HEADER + sum(lengths))
        packed = file.read(member.compress_size)
    if member.compress_type == zipfile.ZIP_STORED:
        return packed
    return zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, member.file_size)


class _Checksums:
    """The checksums of members, computed in threads, the largest first.

    Args:
        members: of an archive.
        view: the bytes of the archive.
    """

    def __init__(self, members: list[zipfile.ZipInfo], view: memoryview) -> None:
        self._threads = ThreadPoolExecutor(_THREADS)
        order = sorted(members, key=lambda member: -member.file_size)
        self._work = [(member, self._threads.submit(_is_whole, member, view)) for member in order]

    def first_different(self) -> str | None:
        """Return the name of a member that is not as it was written, None where all are."""
        return next((member.filename for member, whole in self._work if not whole.result()), None)

    def stop(self) -> None:
        """End the threads; no view of the bytes is left."""
        self._threads.shutdown(cancel_futures=True)


def _is_whole(member: zipfile.ZipInfo, view: memoryview) -> bool:
    """Return whether the bytes of a member are there and have its checksum."""
    lengths = struct.unpack_from("<HH", view, member.header_offset + _NAME_AND_EXTRA)
    start = member.header_offset + _LOCAL_HEADER + sum(lengths)
    with view[start : start + member.compress_size] as packed:
        if member.compress_type == zipfile.ZIP_STORED:
            return len(packed) == member.file_size and zlib.crc32(packed) == member.CRC
        return _crc32_of_deflated(packed) == member.CRC


def _crc32_of_deflated(packed: memoryview) -> int:
    """Return the CRC-32 of unpacked bytes, a few of them in memory at a time."""
    unpacker, checksum, rest = zlib.decompressobj(-zlib.MAX_WBITS), 0, bytes(packed)
    while not unpacker.eof:
        part = unpacker.decompress(rest, _CHUNK)
        rest = unpacker.unconsumed_tail
        if not part and not rest:
            break
        checksum = zlib.crc32(part, checksum)
    return checksum
