"""Remove, rename or replace one data set of an HDF5 file, or make it a link to elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.random import Generator

from ..families import Inapplicable
from ..odd_arrays import odd_array

_ACTIONS = ("remove", "rename", "replace", "replace", "replace", "group", "external", "loop", "strings", "chunks")


def mutate(path: Path, rng: Generator) -> str:
    """Change the file and return how."""
    action = _ACTIONS[rng.integers(len(_ACTIONS))]
    try:
        with h5py.File(path, "r+") as file:
            names: list[str] = []
            file.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
            name = names[rng.integers(len(names))]
            _change(file, name, action, rng)
    except Exception as error:
        raise Inapplicable("h5py does not write that") from error
    return f"{action} {name}"


def _change(file: Any, name: str, action: str, rng: Generator) -> None:
    array = np.array(file[name])
    del file[name]
    if action == "rename":
        file[f"{name}x"] = array
    elif action == "replace":
        file[name] = odd_array(array, rng)
    elif action == "group":
        file.create_group(name)
    elif action == "external":
        file[name] = h5py.ExternalLink("/etc/passwd", "/x")
    elif action == "loop":
        file[name] = h5py.SoftLink(f"/{name}")
    elif action == "strings":
        file[name] = ["a", "b"]
    elif action == "chunks":
        file.create_dataset(name, shape=(10**9, 10**6), chunks=(1, 1000), dtype="f4")
