"""Damage one array of a .npz file, with right checksums: its header, type, shape or numbers."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.random import Generator

from ..families import Inapplicable
from ..odd_arrays import odd_array
from ..zips import read_members, write_members
from .npy_header import changed_header


def mutate(path: Path, rng: Generator) -> str:
    """Write the archive anew and return what was changed."""
    members = read_members(path)
    index = int(rng.integers(len(members)))
    member = members[index]
    if rng.random() < 0.4:
        data, what = changed_header(member.data, rng)
    else:
        data, what = _other_array(member.data, rng)
    members[index] = replace(member, data=data)
    write_members(path, members)
    return f"{member.name}: {what[:80]}"


def _other_array(data: bytes, rng: Generator) -> tuple[bytes, str]:
    try:
        array = odd_array(np.load(io.BytesIO(data)), rng)
    except Exception as error:
        raise Inapplicable("no .npy") from error
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue(), f"{np.asarray(array).dtype} {np.asarray(array).shape}"
