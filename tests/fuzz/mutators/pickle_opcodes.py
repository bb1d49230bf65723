"""Put opcodes into a pickle that no library writes: calls, doubling, depth, lengths that lie."""

from __future__ import annotations

from pathlib import Path

from numpy.random import Generator

from ..pickles import with_odd_opcodes


def mutate(path: Path, rng: Generator) -> str:
    """Write the pickle anew and return its odd opcodes."""
    data, what = with_odd_opcodes(path.read_bytes(), rng)
    path.write_bytes(data)
    return what
