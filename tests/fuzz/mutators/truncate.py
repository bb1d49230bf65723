"""Cut a file off, as an interrupted download does."""

from __future__ import annotations

from pathlib import Path

from numpy.random import Generator


def mutate(path: Path, rng: Generator) -> str:
    """Cut the file off and return its new length."""
    data = path.read_bytes()
    anywhere = int(rng.integers(max(1, len(data))))
    length = int(rng.choice([0, 1, 4, len(data) // 2, len(data) - 1, anywhere]))
    path.write_bytes(data[: max(0, length)])
    return f"{length} of {len(data)} bytes"
