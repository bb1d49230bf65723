"""Write a tar archive with one member removed, renamed, doubled, emptied or made a link, or with lying headers."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

from numpy.random import Generator

from ..families import Inapplicable

_NAMES = ("../../x.jpg", "/etc/x", "x" * 300, "é.jpg", "a\x1b[31m.txt", ".", "000.jpg.txt", "")
_ACTIONS = ("remove", "rename", "double", "empty", "symlink", "hardlink", "device", "swap", "data", "size", "gzip")


def mutate(path: Path, rng: Generator) -> str:
    """Write the archive anew and return how."""
    members = _read(path)
    index, action = int(rng.integers(len(members))), _ACTIONS[rng.integers(len(_ACTIONS))]
    info, data = members[index]
    other = members[rng.integers(len(members))][1]
    if action == "rename":
        info.name = str(_NAMES[rng.integers(len(_NAMES))])
    elif action in ("symlink", "hardlink", "device"):
        info.type = {"symlink": tarfile.SYMTYPE, "hardlink": tarfile.LNKTYPE, "device": tarfile.FIFOTYPE}[action]
        info.linkname, data = "../../../etc/passwd", b""
    changed = {"remove": [], "double": [(info, data)] * 2, "empty": [(info, b"")], "swap": [(info, other)],
               "data": [(info, rng.bytes(len(data)))]}.get(action, [(info, data)])  # fmt: skip
    _write(path, [*members[:index], *changed, *members[index + 1 :]], packed=action == "gzip")
    if action == "size":
        whole = bytearray(path.read_bytes())
        whole[124:136] = b"77777777777\0"
        path.write_bytes(whole)
    return f"{action} {ascii(info.name)[:60]}"


def _read(path: Path) -> list[tuple[tarfile.TarInfo, bytes]]:
    try:
        with tarfile.open(path) as archive:
            files = [(info, archive.extractfile(info)) for info in archive.getmembers()]
            members = [(info, file.read() if file else b"") for info, file in files]
    except Exception as error:
        raise Inapplicable("no tar") from error
    if not members:
        raise Inapplicable("no members")
    return members


def _write(path: Path, members: list[tuple[tarfile.TarInfo, bytes]], packed: bool) -> None:
    with tarfile.open(path, "w:gz" if packed else "w") as archive:
        for info, data in members:
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
