"""Damage the pickle inside a torch archive, under a correct checksum: odd opcodes, or changed bytes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from numpy.random import Generator

from ..families import Inapplicable
from ..pickles import with_odd_opcodes
from ..zips import read_members, write_members


def mutate(path: Path, rng: Generator) -> str:
    """Write the archive anew and return what was changed."""
    members = read_members(path)
    indices = [number for number, member in enumerate(members) if member.name.endswith(".pkl")]
    if not indices:
        raise Inapplicable("no pickle")
    index = indices[rng.integers(len(indices))]
    stored = members[index].data
    if rng.random() < 0.5:
        data, what = with_odd_opcodes(stored, rng)
    else:
        at = int(rng.integers(len(stored)))
        data, what = stored[:at] + rng.bytes(1) + stored[at + 1 :], f"byte {at} of {len(stored)}"
    members[index] = replace(members[index], data=data)
    write_members(path, members)
    return what
