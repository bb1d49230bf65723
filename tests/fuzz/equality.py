"""Are two results equal? A digest over everything in them: numbers to the last bit, texts, order."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch


def digest(value: object) -> str:
    """Return the SHA-256 of a result."""
    whole = hashlib.sha256()
    for part in _parts(value):
        whole.update(len(part).to_bytes(8, "little"))
        whole.update(part)
    return whole.hexdigest()


def _parts(value: Any) -> Iterator[bytes]:
    yield type(value).__name__.encode()
    if isinstance(value, torch.Tensor):
        yield from _parts(value.detach().cpu().float().numpy() if value.dtype == torch.bfloat16 else _array(value))
    elif isinstance(value, np.ndarray):
        yield f"{value.dtype}{value.shape}".encode()
        yield repr(value.tolist()).encode() if value.dtype == object else np.ascontiguousarray(value).tobytes()
    elif isinstance(value, pd.DataFrame):
        yield from _parts({str(name): list(value[name]) for name in value})
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from _parts({item.name: getattr(value, item.name) for item in dataclasses.fields(value)})
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _parts(key)
            yield from _parts(item)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in sorted(value, key=repr) if isinstance(value, set | frozenset) else value:
            yield from _parts(item)
    elif callable(value):
        yield b"callable"
    else:
        yield repr(value).encode("utf-8", "surrogatepass")


def _array(tensor: torch.Tensor) -> Any:
    return tensor.detach().cpu().numpy()
