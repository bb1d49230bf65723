"""Write a safetensors file of other tensors: one removed, renamed, doubled, or of another type, shape or numbers."""

from __future__ import annotations

from pathlib import Path

import safetensors.torch
import torch
from numpy.random import Generator

from ..families import Inapplicable
from ..odd_arrays import odd_tensor
from ..odd_values import draw_text


def mutate(path: Path, rng: Generator) -> str:
    """Write the file anew and return what was changed."""
    try:
        tensors = safetensors.torch.load_file(path)
    except Exception as error:
        raise Inapplicable("no safetensors") from error
    if not tensors:
        raise Inapplicable("no tensors")
    name = sorted(tensors)[rng.integers(len(tensors))]
    action = ("remove", "rename", "double", "replace", "replace", "replace")[rng.integers(6)]
    tensor = tensors[name] if action == "double" else tensors.pop(name)
    if action in ("rename", "double"):
        tensors[draw_text(rng).encode("utf-8", "replace").decode()[:1000]] = tensor.clone()
    if action == "replace":
        tensors[name] = _plain(odd_tensor(tensor, rng))
    safetensors.torch.save_file(tensors, path)
    return f"{action} {name}"


def _plain(value: object) -> torch.Tensor:
    usual = isinstance(value, torch.Tensor) and value.layout == torch.strided and not value.is_quantized
    if not isinstance(value, torch.Tensor) or not usual or value.is_meta or value.numel() > 10**6:
        raise Inapplicable("no tensor that safetensors write")
    return value.detach().contiguous()
