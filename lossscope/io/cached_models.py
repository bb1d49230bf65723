"""Which models have vectors in the cache folder, and how many?"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .temporary_files import remove_leftovers
from .vector_cache import Entry, entries, remove_entry

_SHARDS, _EARLIER, _UNREADABLE = "shards of a dump", "earlier lossscope", "unreadable"  # kinds without a name
_VECTORS = ("images", "captions", "vectors")  # tensors of an entry that have them


@dataclass(frozen=True)
class CachedModel:
    """The entries of a model, as their heads describe them; their content is verified when it is read."""

    name: str  # path of the model; empty where no entry says it
    kind: str
    rows: int  # vectors
    width: int  # numbers of a vector
    size: int  # bytes
    used: float  # seconds since 1970, when an entry was read or written last


def cached_models(folder: Path) -> list[CachedModel]:
    """Return the models in a cache folder, the one that was used last first."""
    groups: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries(folder):
        groups[entry.model].append(entry)
    return sorted(map(_summarise, groups.values()), key=lambda model: (-model.used, model.name))


def empty_cache(folder: Path) -> list[Entry]:
    """Remove all entries and return those that are gone; what a process writes right now stays its own."""
    found = entries(folder)
    for entry in found:
        remove_entry(entry.path)
    for model in {entry.path.parent for entry in found} - {folder}:
        remove_leftovers(model)
        with contextlib.suppress(OSError):  # while a process writes there
            model.rmdir()
    return [entry for entry in found if not entry.path.exists()]


def _summarise(group: Sequence[Entry]) -> CachedModel:
    """Return what the entries of a model say together; names and kinds are those of the last one."""
    facts = [_read_head(entry) for entry in group]
    name, kind, _, _ = next((each for each in reversed(facts) if each[0]), facts[-1])
    rows, width = sum(each[2] for each in facts), max(each[3] for each in facts)
    return CachedModel(name, kind, rows, width, sum(entry.size for entry in group), max(e.used for e in group))


def _read_head(entry: Entry) -> tuple[str, str, int, int]:
    """Return name, kind, rows and width as the head of an entry states them."""
    try:
        return _shape_of_shards(entry.path) if entry.path.suffix == ".npy" else _read_metadata(entry.path)
    except Exception:  # damaged, removed meanwhile, not to be read
        return "", _UNREADABLE, 0, 0


def _shape_of_shards(path: Path) -> tuple[str, str, int, int]:
    from .arrays import open_npy

    rows = open_npy(path)
    return "", _SHARDS, len(rows), rows.shape[1]


def _read_metadata(path: Path) -> tuple[str, str, int, int]:
    import safetensors

    with safetensors.safe_open(path, "pt") as file:
        stated = file.metadata() or {}
        names = [name for name in file.keys() if name in _VECTORS]  # noqa: SIM118 - no mapping
        shapes = [file.get_slice(name).get_shape() for name in names]
    name, kind = stated.get("name", ""), stated.get("kind", _EARLIER)
    return name, kind, sum(shape[0] for shape in shapes), max(shape[1] for shape in shapes)
