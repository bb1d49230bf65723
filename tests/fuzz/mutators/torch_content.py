"""Write a torch file with one entry changed: a key removed or renamed, a value or a tensor of another kind."""

from __future__ import annotations

import pickle
from pathlib import Path

import torch
from numpy.random import Generator

from ..families import Inapplicable
from ..odd_arrays import odd_entry, odd_tensor
from ..torch_files import read_torch, write_torch
from ..trees import edit


def mutate(path: Path, rng: Generator) -> str:
    """Write the file anew and return what was changed."""
    tree, what = edit(read_torch(path), rng, lambda value: odd_entry(value, rng, torch.Tensor, odd_tensor))
    try:
        write_torch(path, tree)
    except (RecursionError, pickle.PicklingError, NotImplementedError, RuntimeError) as error:
        raise Inapplicable("torch does not write that") from error
    return what
