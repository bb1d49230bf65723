"""Swap two blocks of a file."""

from __future__ import annotations

from pathlib import Path

from numpy.random import Generator


def mutate(path: Path, rng: Generator) -> str:
    """Swap the blocks and return where they were."""
    data = path.read_bytes()
    size = int(min(len(data) // 2, rng.choice([1, 16, 512, 4096])))
    first = int(rng.integers(len(data) - 2 * size + 1))
    second = int(rng.integers(first + size, len(data) - size + 1))
    a, b = data[first : first + size], data[second : second + size]
    path.write_bytes(data[:first] + b + data[first + size : second] + a + data[second + size :])
    return f"{size} bytes at {first} and {second}"
