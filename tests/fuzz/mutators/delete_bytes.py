"""Delete up to 64 bytes."""

from __future__ import annotations

from pathlib import Path

from numpy.random import Generator


def mutate(path: Path, rng: Generator) -> str:
    """Delete the bytes and return where."""
    data = path.read_bytes()
    start, size = int(rng.integers(max(1, len(data)))), int(rng.integers(1, 65))
    path.write_bytes(data[:start] + data[start + size :])
    return f"{size} bytes at {start}"
