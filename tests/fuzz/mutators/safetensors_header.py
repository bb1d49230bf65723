"""Damage the JSON header of a safetensors file: types, shapes, offsets, names, its stated length, its depth."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

from numpy.random import Generator

from ..families import Inapplicable
from .json_values import edited_text

_SHAPES: tuple[Any, ...] = ([], [0], [-1], [99999999999, 16], [2**63], ["x"], [1] * 100, None, 4)
_OFFSETS = ([0, 0], [0, 2**60], [8, 4], [-4, 0], [0], None, [4, 8])
_TYPES = ("F64", "BF16", "F8_E4M3", "I8", "X9", "", None, 3, "BOOL", "U64")


def mutate(path: Path, rng: Generator) -> str:
    """Write another header and return what was changed."""
    data = path.read_bytes()
    if len(data) < 8 or struct.unpack("<Q", data[:8])[0] > len(data):
        raise Inapplicable("no safetensors")
    length = struct.unpack("<Q", data[:8])[0]
    text = data[8 : 8 + length].decode("utf-8", "replace")
    new, what = edited_text(text, rng) if rng.random() < 0.4 else _other_tensor(text, rng)
    encoded = new.encode("utf-8", "surrogatepass")
    stated = int(rng.choice([len(encoded)] * 5 + [0, 2**40]))
    path.write_bytes(struct.pack("<Q", stated) + encoded + data[8 + length :])
    return f"{what}, length {stated}"


def _other_tensor(text: str, rng: Generator) -> tuple[str, str]:
    try:
        header = json.loads(text)
        names = [name for name in header if name != "__metadata__"]
        name = names[rng.integers(len(names))]
        field: Any = ("shape", "data_offsets", "dtype")[rng.integers(3)]
        values: Any = {"shape": _SHAPES, "data_offsets": _OFFSETS, "dtype": _TYPES}[field]
        header[name][field] = values[rng.integers(len(values))]
    except (ValueError, TypeError, KeyError) as error:
        raise Inapplicable("no safetensors") from error
    return json.dumps(header), f"{field} of {name} is {header[name][field]}"
