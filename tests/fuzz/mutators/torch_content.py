"""Write a torch file with one entry changed: a key removed or renamed, a value or a tensor of another kind."""

from __future__ import annotations

import pickle
import zipfile
from pathlib import Path
from typing import Any

import torch
from numpy.random import Generator

from ..families import Inapplicable
from ..odd_arrays import odd_tensor
from ..odd_values import draw_object
from ..trees import edit


def mutate(path: Path, rng: Generator) -> str:
    """Write the file anew and return what was changed."""
    try:
        content = torch.load(path, map_location="cpu", weights_only=False)
    except Exception as error:
        raise Inapplicable("no torch file") from error
    tree, what = edit(content, rng, lambda value: _draw(value, rng))
    try:
        torch.save(tree, path, _use_new_zipfile_serialization=zipfile.is_zipfile(path))
    except (RecursionError, pickle.PicklingError, NotImplementedError, RuntimeError) as error:
        raise Inapplicable("torch does not write that") from error
    return what


def _draw(value: Any, rng: Generator) -> Any:
    if isinstance(value, torch.Tensor) and rng.random() < 0.8:
        return odd_tensor(value, rng)
    return draw_object(rng)
