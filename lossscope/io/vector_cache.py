"""Vectors that were computed before: a folder for each model in the cache folder; the least recently used go first.

An entry is CACHE/MODEL/KEY.safetensors, where MODEL and KEY are digests. Its digest covers the key, so that damage, a
file in the place of another, and a file of another program are all found, removed and made again.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lossscope.errors import InputError

from .files import read_safetensors, write_safetensors
from .temporary_files import remove_leftovers

if TYPE_CHECKING:
    from torch import Tensor

LIMIT = "LOSSSCOPE_CACHE_SIZE"  # environment: size of all entries, at most
_USUAL_LIMIT = "10GB"
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_DIGEST = re.compile(r"[0-9a-f]{64}")
_EARLIER = ""  # model of an entry that an earlier lossscope wrote into the cache folder itself


@dataclass(frozen=True)
class Entry:
    """A file of the cache."""

    path: Path
    model: str  # digest
    size: int  # bytes
    used: float  # seconds since 1970, when it was read or written last


@dataclass(frozen=True)
class EntryFacts:
    """What an entry says of itself; nothing in it is checked but when its vectors are read."""

    name: str = ""  # of the model
    kind: str = ""  # of the model; empty of an unreadable entry
    rows: int = 0
    width: int = 0


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
    with contextlib.suppress(OSError):  # of a cache that others may only read
        os.utime(path)
    return tensors


def remove_entry(path: Path) -> None:
    """Remove an entry, where it can be removed."""
    with contextlib.suppress(OSError):
        path.unlink()


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
    for path in (*folder.glob("*.safetensors"), *folder.glob("*/*.safetensors")):
        model = _EARLIER if path.parent == folder else path.parent.name
        if not _DIGEST.fullmatch(path.stem) or not (model == _EARLIER or _DIGEST.fullmatch(model)):
            continue
        with contextlib.suppress(OSError):  # removed meanwhile
            facts = path.lstat()
            if stat.S_ISREG(facts.st_mode):
                found.append(Entry(path, model, facts.st_size, facts.st_mtime))
    return sorted(found, key=lambda entry: (entry.used, entry.path))


def facts_of(entry: Entry) -> EntryFacts:
    """Return what the head of an entry says: the name and the kind of its model, rows, width."""
    import safetensors

    try:
        with safetensors.safe_open(entry.path, "pt") as file:
            shapes = [file.get_slice(name).get_shape() for name in file.keys() if name != "keys"]  # noqa: SIM118
            stated = file.metadata() or {}
    except Exception:  # damaged, removed meanwhile, not to be read
        return EntryFacts()
    vectors = [shape for shape in shapes if len(shape) == 2]
    rows, width = sum(shape[0] for shape in vectors), max((shape[1] for shape in vectors), default=0)
    return EntryFacts(stated.get("name", ""), stated.get("kind", "earlier"), rows, width)


def empty_cache(folder: Path) -> list[Entry]:
    """Remove all entries and return those that are gone; what a process writes right now stays its own."""
    removed = []
    for entry in entries(folder):
        remove_entry(entry.path)
        if not entry.path.exists():
            removed.append(entry)
    for model in _models(folder):
        remove_leftovers(model)
        with contextlib.suppress(OSError):
            model.rmdir()
    return removed


def _models(folder: Path) -> Iterator[Path]:
    return (path for path in folder.glob("*") if _DIGEST.fullmatch(path.name) and path.is_dir())


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
