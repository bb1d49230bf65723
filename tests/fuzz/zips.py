"""Zip archives as lists of members, read and written whole."""

from __future__ import annotations

import warnings
import zipfile
from dataclasses import dataclass
from pathlib import Path

from .families import Inapplicable


@dataclass(frozen=True)
class Member:
    """One file of an archive."""

    name: str
    data: bytes
    method: int = zipfile.ZIP_STORED


def read_members(path: Path) -> list[Member]:
    """Return the members of an archive. Raises Inapplicable where it cannot be read or has none."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = [Member(info.filename, archive.read(info), info.compress_type) for info in archive.infolist()]
    except Exception as error:
        raise Inapplicable("no zip") from error
    if not members:
        raise Inapplicable("no members")
    return members


def write_members(path: Path, members: list[Member]) -> None:
    """Write an archive; a name may occur twice."""
    with warnings.catch_warnings(action="ignore"), zipfile.ZipFile(path, "w") as archive:
        for member in members:
            archive.writestr(zipfile.ZipInfo(member.name), member.data, member.method)
