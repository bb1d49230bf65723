"""Append random bytes, a line end, or the file once more."""

from __future__ import annotations

from pathlib import Path

from numpy.random import Generator


def mutate(path: Path, rng: Generator) -> str:
    """Append the bytes and return how many."""
    data = path.read_bytes()
    new = [rng.bytes(int(rng.integers(1, 4097))), b"\0", b"\n\xff\xfe", data][rng.integers(4)]
    path.write_bytes(data + new)
    return f"{len(new)} bytes"
