"""Flip one to eight bits, as a bad disk or memory does."""

from __future__ import annotations

from pathlib import Path

from numpy.random import Generator


def mutate(path: Path, rng: Generator) -> str:
    """Flip the bits in place and return which."""
    data = bytearray(path.read_bytes() or b"\0")
    bits = rng.integers(8 * len(data), size=rng.integers(1, 9))
    for bit in set(bits.tolist()):
        data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)
    return f"bits {sorted(set(bits.tolist()))}"
