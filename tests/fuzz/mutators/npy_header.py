"""Let the header of a .npy file state another type, shape or order than its data have, or nothing readable."""

from __future__ import annotations

import struct
from pathlib import Path

from numpy.random import Generator

from ..families import Inapplicable

_TYPES = (
    "'<f8'", "'|O'", "'<U1000000000'", "[('a', '<f4')]", "'<f4,<f4'", "'V99999999999'", "'nonsense'", "5", "None",
    "'<M8[ns]'", "'>f4'", "'|S0'", "'|b1'", "[('a', '<f4'), ('a', '<f4')]",
)  # fmt: skip
_SHAPES = (
    "(99999999999, 16)", "()", "(0,)", "(-1, 4)", "(1,) * 9", "(2**70,)", "(1, 1, 1, 1)", "'x'", "[4, 4]", "(True, 4)",
    "(4611686018427387904, 4)", "None", "(10**9,)", "(1.0, 2)",
)  # fmt: skip
_HEADERS = (
    "", "{", "{}", "[" * 20_000, "{'descr': '<f4'}", "__import__('os')", "(" * 5_000 + ")" * 5_000, "\0" * 64,
    "{'descr': '<f4', 'fortran_order': 3, 'shape': (1,)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}",
    "1" * 6_000, "{**1}", "é",
)  # fmt: skip


def mutate(path: Path, rng: Generator) -> str:
    """Write another header and return it."""
    data, header = changed_header(path.read_bytes(), rng)
    path.write_bytes(data)
    return header[:80]


def changed_header(data: bytes, rng: Generator) -> tuple[bytes, str]:
    """Return the bytes of a .npy file with another header, and the header. Raises Inapplicable for other files."""
    if data[:6] != b"\x93NUMPY" or len(data) < 10:
        raise Inapplicable("no .npy")
    length = struct.unpack("<H", data[8:10])[0]
    stored, body = data[10 : 10 + length].decode("latin1"), data[10 + length :]
    choice = rng.random()
    header = _with_field(stored, "'descr': ", _TYPES, rng) if choice < 0.35 else _HEADERS[rng.integers(len(_HEADERS))]
    if 0.35 <= choice < 0.8:
        header = _with_field(stored, "'shape': ", _SHAPES, rng)
    encoded = header.encode("utf-8") + b"\n"
    stated = int(rng.choice([len(encoded), len(encoded), len(encoded), 65535])) % 65536
    return data[:8] + struct.pack("<H", stated) + encoded + body, header


def _with_field(header: str, name: str, values: tuple[str, ...], rng: Generator) -> str:
    before, found, after = header.partition(name)
    end = {"'descr': ": ", 'fortran_order'", "'shape': ": ", }"}[name]
    return before + found + values[rng.integers(len(values))] + end + after.partition(end)[2]
