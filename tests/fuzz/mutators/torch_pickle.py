"""Damage the pickle inside a torch archive, under a checksum that is right: odd opcodes, or bytes changed."""

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
    places = [place for place, member in enumerate(members) if member.name.endswith(".pkl")]
    if not places:
        raise Inapplicable("no pickle")
    place = places[rng.integers(len(places))]
    own = members[place].data
    if rng.random() < 0.5:
        data, what = with_odd_opcodes(own, rng)
    else:
        at = int(rng.integers(len(own)))
        data, what = own[:at] + rng.bytes(1) + own[at + 1 :], f"byte {at} of {len(own)}"
    members[place] = replace(members[place], data=data)
    write_members(path, members)
    return what
