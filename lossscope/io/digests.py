"""SHA-256 of plain values and tensors, stored with them, so that numbers that changed since are never used."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from lossscope.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

_PLAIN = (bool, int, float, str, bytes, type(None))
_THREADS = 4  # at most; hashing releases Python's lock


def digests_of(parts: Mapping[str, Any]) -> dict[str, str]:
    """Return name -> SHA-256 in hex of each part: its values, and type, shape and numbers of its tensors.

    A list and a tuple are the same, so that JSON keeps a digest. Raises TypeError for other objects than plain values,
    containers and tensors.
    """
    tensors = list({id(leaf): leaf for part in parts.values() for leaf in _tensors(part)}.values())
    hashed: dict[int, str] = {}
    if tensors:
        with ThreadPoolExecutor(min(_THREADS, os.cpu_count() or 1)) as pool:
            hashed = dict(zip(map(id, tensors), pool.map(_hash_tensor, tensors), strict=True))
    return {name: hashlib.sha256("".join(_words(part, hashed)).encode()).hexdigest() for name, part in parts.items()}


def require_digests(path: object, parts: Mapping[str, Any], stored: Mapping[str, str]) -> None:
    """Raise InputError that names the first part of a file which is not what was saved.

    Args:
        path: of the file, for messages.
        parts: the parts that were read, by name.
        stored: name -> SHA-256 as the file states it.
    """
    try:
        actual = digests_of(parts)
    except TypeError as error:
        raise InputError(f"{path} must hold plain values and tensors; it holds {error}") from error
    for name, digest in actual.items():
        if name not in stored:
            raise InputError(f"{path} must state the digest of its {name}; it does not. Copy the file again")
        if stored[name] != digest:
            raise InputError(
                f"{name} of {path} must match the digest that the file states; they differ, so damage or a change "
                "came later. Copy it again, or train it again"
            )


def _is_tensor(value: Any) -> bool:
    from torch import Tensor

    return isinstance(value, Tensor)


def _tensors(value: Any) -> Iterator[Tensor]:
    if type(value) in _PLAIN:  # most are
        return
    if isinstance(value, Mapping):
        for item in value.values():
            yield from _tensors(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item)
    elif _is_tensor(value):
        yield value


def _hash_tensor(tensor: Tensor) -> str:
    """Return the SHA-256 of a tensor's numbers, row after row, as the CPU holds them."""
    import torch

    plain = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
    return hashlib.sha256(plain.numpy().data).hexdigest()


def _words(value: Any, hashed: Mapping[int, str]) -> Iterator[str]:
    """Yield a text from which a value can be told from every other, its tensors by their digests."""
    if type(value) in _PLAIN:
        yield f"{type(value).__name__} {value!r};"
    elif isinstance(value, Mapping):
        yield f"dict {len(value)}:"
        items = {"".join(_words(key, hashed)): item for key, item in value.items()}
        for key in sorted(items):  # safetensors and JSON give back another order
            yield key
            yield from _words(items[key], hashed)
    elif isinstance(value, list | tuple):
        yield f"list {len(value)}:"
        for item in value:
            yield from _words(item, hashed)
    elif _is_tensor(value):
        yield f"tensor {value.dtype} {tuple(value.shape)} {hashed[id(value)]};"
    else:
        raise TypeError(type(value).__name__)
