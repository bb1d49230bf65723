"""One case: a kind and a seed name the same damage of the same file on every machine."""

from __future__ import annotations

import hashlib
import shutil
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.random import Generator

from .families import BYTES, Inapplicable, load_mutator, mutators_of
from .kind import Kind
from .signing import SIGNABLE, sign

EVIL = 'open(__file__ + ".ran", "w").close()\n\n\nclass Evil:\n    pass\n\n\nobjective = Evil\n'
_TRIES = 30
_SIGNED = 0.5  # share of readable files whose checksums are corrected


@dataclass(frozen=True)
class Damage:
    """The damage of a folder."""

    file: str  # relative to the folder
    mutators: tuple[str, ...]
    what: str

    @property
    def of_bytes(self) -> bool:
        """Did the damage change only bytes, without knowledge of the format?"""
        return all(name in BYTES for name in self.mutators)


def random_of(kind: str, seed: int) -> Generator:
    """Return the generator of a case."""
    return np.random.default_rng([zlib.crc32(kind.encode()), seed])


def fresh_copy(original: Path, folder: Path) -> None:
    """Make `folder` a copy of a valid folder, with a plug-in beside it that nobody may import."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(original, folder, symlinks=True)
    (folder / "evil.py").write_text(EVIL, encoding="utf-8")


def damage(original: Path, folder: Path, kind: Kind, rng: Generator) -> Damage:
    """Make `folder` a damaged copy: one mutator, or two on one file. At least one byte or name differs."""
    for _ in range(_TRIES):
        fresh_copy(original, folder)
        pattern = list(kind.FILES)[rng.integers(len(kind.FILES))]
        family = kind.FILES[pattern]
        files = [folder / pattern] if family == "folder" else sorted(folder.glob(pattern))
        file = files[rng.integers(len(files))]
        before = None if family == "folder" else file.read_bytes()
        done = _mutate(file, family, rng)
        if done and (before is None or file.read_bytes() != before):
            if before is not None and {name for name, _ in done} <= SIGNABLE and rng.random() < _SIGNED:
                done += [("signed", "right digests")] * sign(file, hashlib.sha256(before).hexdigest())
            return Damage(str(file.relative_to(folder)), tuple(name for name, _ in done), "; ".join(w for _, w in done))
    raise RuntimeError(f"no mutator changes {original}")


def _mutate(file: Path, family: str, rng: Generator) -> list[tuple[str, str]]:
    names = mutators_of(family)
    drawn = [names[rng.integers(len(names))] for _ in range(2 if rng.random() < 0.15 and family != "folder" else 1)]
    done: list[tuple[str, str]] = []
    for name in drawn:
        try:
            done.append((name, load_mutator(name).mutate(file, rng)))
        except Inapplicable:
            continue
    return done
