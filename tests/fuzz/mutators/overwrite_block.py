"""Overwrite a block with zeros, ones or random bytes, as a torn write does."""

from __future__ import annotations

from pathlib import Path

from numpy.random import Generator


def mutate(path: Path, rng: Generator) -> str:
    """Overwrite the block and return where."""
    data = path.read_bytes()
    size = int(min(len(data), rng.choice([1, 4, 16, 512, 4096])))
    start = int(rng.integers(len(data) - size + 1))
    fill = [b"\0" * size, b"\xff" * size, rng.bytes(size)][rng.integers(3)]
    path.write_bytes(data[:start] + fill + data[start + size :])
    return f"{size} bytes at {start}"
