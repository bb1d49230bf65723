"""Write a text in another encoding, with a byte order mark, NUL, control characters or bytes that are no UTF-8."""

from __future__ import annotations

from pathlib import Path

from numpy.random import Generator

from ..texts import read_text

_CODECS = ("utf-16", "utf-32", "utf-8-sig", "utf-7")
_STRANGE = (
    b"\0",
    b"\x1b[2J",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"\r",
    b"\x1a",
    "\u202e".encode(),
    b"\xc3\x28",
    b"\x7f\x08",
)


def mutate(path: Path, rng: Generator) -> str:
    """Write the text anew and return how."""
    text = read_text(path)
    if rng.random() < 0.3:
        codec = _CODECS[rng.integers(len(_CODECS))]
        path.write_bytes(text.encode(codec))
        return codec
    data, strange = path.read_bytes(), _STRANGE[rng.integers(len(_STRANGE))]
    start = int(rng.integers(len(data) + 1))
    path.write_bytes(data[:start] + strange + data[start:])
    return f"{strange!r} at {start}"
