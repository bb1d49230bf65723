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
    index, action = int(rng.integers(len(members))), _ACTIONS[rng.integers(len(_ACTIONS))]
    if action == "directory":
        return _change_directory(path, rng)
    member = members[index]
    write_members(path, [*members[:index], *_change(member, members, action, rng), *members[index + 1 :]])
    if action == "comment":
        path.write_bytes(path.read_bytes() + b"behind the archive")
    return f"{action} {member.name}"


def _change(member: Member, members: list[Member], action: str, rng: Generator) -> list[Member]:
    other = members[rng.integers(len(members))]
    return {
        "remove": [], "rename": [replace(member, name=str(_NAMES[rng.integers(len(_NAMES))]))],
        "double": [member, member], "double other": [member, replace(other, name=member.name)],
        "compress": [replace(member, method=int(_METHODS[rng.integers(len(_METHODS))]))],
        "empty": [replace(member, data=b"")],
        "bomb": [replace(member, data=member.data + bytes(30_000_000), method=zipfile.ZIP_DEFLATED)],
        "swap": [replace(member, data=other.data)], "data": [replace(member, data=_flip_bit(member.data, rng))],
        "comment": [member],
    }[action]  # fmt: skip


def _flip_bit(data: bytes, rng: Generator) -> bytes:
    """Return data with one flipped bit, under a correct checksum."""
    if not data:
        return b"\0"
    index = int(rng.integers(len(data)))
    return data[:index] + bytes([data[index] ^ (1 << int(rng.integers(8)))]) + data[index + 1 :]


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
