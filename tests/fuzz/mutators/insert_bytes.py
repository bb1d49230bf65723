"""Insert up to 64 random bytes."""

from __future__ import annotations

from pathlib import Path

from numpy.random import Generator


def mutate(path: Path, rng: Generator) -> str:
    """Insert the bytes and return where."""
    data = path.read_bytes()
    start, new = int(rng.integers(len(data) + 1)), rng.bytes(int(rng.integers(1, 65)))
    path.write_bytes(data[:start] + new + data[start:])
    return f"{len(new)} bytes at {start}"
