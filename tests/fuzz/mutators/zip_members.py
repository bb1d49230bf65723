"""Remove, rename, double, compress or empty members of a zip archive, or state other sizes or checksums of them."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path

from numpy.random import Generator

from ..zips import Member, read_members, write_members

_NAMES = ("../../x", "/etc/x", "x" * 300, "a\\b", "é", "", "archive/", "images.npy/x", "..", "images", "data.pkl")
_METHODS = (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
_ACTIONS = (
    "remove",
    "rename",
    "double",
    "double other",
    "compress",
    "empty",
    "bomb",
    "swap",
    "data",
    "directory",
    "comment",
)


def mutate(path: Path, rng: Generator) -> str:
    """Change the archive and return how."""
    members = read_members(path)
    place, action = int(rng.integers(len(members))), _ACTIONS[rng.integers(len(_ACTIONS))]
    if action == "directory":
        return _change_directory(path, rng)
    own = members[place]
    write_members(path, [*members[:place], *_changed(own, members, action, rng), *members[place + 1 :]])
    if action == "comment":
        path.write_bytes(path.read_bytes() + b"behind the archive")
    return f"{action} {own.name}"


def _changed(own: Member, members: list[Member], action: str, rng: Generator) -> list[Member]:
    other = members[rng.integers(len(members))]
    return {
        "remove": [], "rename": [replace(own, name=str(_NAMES[rng.integers(len(_NAMES))]))], "double": [own, own],
        "double other": [own, replace(other, name=own.name)],
        "compress": [replace(own, method=int(_METHODS[rng.integers(len(_METHODS))]))],
        "empty": [replace(own, data=b"")],
        "bomb": [replace(own, data=own.data + bytes(30_000_000), method=zipfile.ZIP_DEFLATED)],
        "swap": [replace(own, data=other.data)], "data": [replace(own, data=_flipped(own.data, rng))], "comment": [own],
    }[action]  # fmt: skip


def _flipped(data: bytes, rng: Generator) -> bytes:
    """Other data under a checksum that is right."""
    if not data:
        return b"\0"
    place = int(rng.integers(len(data)))
    return data[:place] + bytes([data[place] ^ (1 << int(rng.integers(8)))]) + data[place + 1 :]


def _change_directory(path: Path, rng: Generator) -> str:
    """State another checksum, size, method or flag of one member in the directory at the end."""
    data = bytearray(path.read_bytes())
    starts = [i for i in range(len(data) - 46) if data[i : i + 4] == b"PK\x01\x02"]
    start = starts[rng.integers(len(starts))]
    offset, size = ((8, 2), (10, 2), (16, 4), (20, 4), (24, 4), (28, 2), (42, 4))[rng.integers(7)]
    odd = (b"\xff" * size, bytes(size), b"\x01" + bytes(size - 1))[rng.integers(3)]
    data[start + offset : start + offset + size] = odd
    path.write_bytes(data)
    return f"directory: {size} bytes at {offset} of a member are {odd!r}"
