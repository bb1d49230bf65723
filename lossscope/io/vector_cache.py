"""Vectors that were computed before: a folder for each model in the cache folder; the least recently used go first.

An entry is CACHE/MODEL/KEY.safetensors, where MODEL and KEY are digests. Its digest covers the key, so that damage, a
file in the place of another, and a file of another program are all found, removed and made again. Large shards of a
dump, concatenated, are CACHE/KEY.npy.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lossscope.errors import InputError

from .files import read_safetensors, write_safetensors

if TYPE_CHECKING:
    from torch import Tensor

LIMIT = "LOSSSCOPE_CACHE_SIZE"  # environment: size of all entries, at most
_USUAL_LIMIT = "10GB"
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_DIGEST = re.compile(r"[0-9a-f]{64}")
_OF_MODELS, _ALONE = "*/*.safetensors", ("*.safetensors", "*.npy")  # those of an earlier lossscope; shards of a dump


@dataclass(frozen=True)
class Entry:
    """A file of the cache."""

    path: Path
    model: str  # digest; of an entry in the cache folder itself that of the entry
    size: int  # bytes
    used: float  # seconds since 1970, when it was read or written last


def cache_folder() -> Path:
    """Return the folder of cached vectors: LOSSSCOPE_CACHE, or the user's cache folder."""
    if os.environ.get("LOSSSCOPE_CACHE"):
        return Path(os.environ["LOSSSCOPE_CACHE"])
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "lossscope"


def cache_limit() -> int:
    """Return how many bytes the entries may have: LOSSSCOPE_CACHE_SIZE, or 10 GB.

    Raises InputError for a text that is no size.
    """
    text = os.environ.get(LIMIT) or _USUAL_LIMIT
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?B)", text.strip().upper()) or re.fullmatch(r"(0)()", text.strip())
    if match is None:
        raise InputError(f"{LIMIT} must be a size such as 10GB or 500MB, or 0; got {text!r}")
    return int(float(match[1]) * _UNITS[match[2]])


def read_entry(path: Path) -> dict[str, Tensor] | None:
    """Read the tensors of an entry, which then counts as used; None where there is none, or a damaged one."""
    if not path.is_file():
        return None
    try:
        tensors = read_safetensors(path, needs_digest=True, of=path.stem)
    except InputError:
        remove_entry(path)
        return None
    mark_used(path)
    return tensors


def mark_used(path: Path) -> None:
    """Let an entry count as used now."""
    with contextlib.suppress(OSError):  # of a cache that others may only read
        os.utime(path)


def remove_entry(path: Path) -> None:
    """Remove an entry, where it can be removed, with the digest that stands beside shards of a dump."""
    for file in (path, path.with_suffix(".json")):
        with contextlib.suppress(OSError):
            file.unlink()


def write_entry(path: Path, tensors: Mapping[str, Tensor], name: str, kind: str) -> None:
    """Write an entry, then remove the least recently used ones above the limit.

    A full or read-only folder costs time, not results: nothing is kept there. An entry that alone is above the limit is
    not written.

    Args:
        path: of the entry.
        tensors: by name.
        name: of the model.
        kind: of the model.
    """
    limit = cache_limit()
    if sum(tensor.nbytes for tensor in tensors.values()) > limit:
        return
    with contextlib.suppress(InputError, OSError, MemoryError):
        write_safetensors(path, tensors, of=path.stem, facts={"name": name, "kind": kind})
        _remove_oldest(path.parents[1], limit, path)


def entries(folder: Path) -> list[Entry]:
    """Return the entries in a cache folder, the least recently used one first; files of other programs are none."""
    found = []
    for path in (*folder.glob(_OF_MODELS), *(path for pattern in _ALONE for path in folder.glob(pattern))):
        model = path.stem if path.parent == folder else path.parent.name
        if not (_DIGEST.fullmatch(path.stem) and _DIGEST.fullmatch(model)):
            continue
        with contextlib.suppress(OSError):  # removed meanwhile
            facts = path.lstat()
            if stat.S_ISREG(facts.st_mode):
                found.append(Entry(path, model, facts.st_size, facts.st_mtime))
    return sorted(found, key=lambda entry: (entry.used, entry.path))


def _remove_oldest(folder: Path, limit: int, written: Path) -> None:
    """Remove the least recently used entries until the others have at most `limit` bytes; one just written stays."""
    found = entries(folder)
    size = sum(entry.size for entry in found)
    for entry in found:
        if size <= limit:
            return
        if entry.path != written:
            remove_entry(entry.path)
            size -= entry.size
            with contextlib.suppress(OSError):  # while it has other entries
                entry.path.parent.rmdir()
