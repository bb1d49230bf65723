"""Write a .npy file of another array: other numbers, type or shape, all of it well formed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.random import Generator

from ..families import Inapplicable
from ..odd_arrays import odd_array


def mutate(path: Path, rng: Generator) -> str:
    """Write the array and return its type and shape."""
    try:
        array = odd_array(np.load(path, allow_pickle=True), rng)
    except Exception as error:
        raise Inapplicable("no .npy") from error
    if rng.random() < 0.05:
        array = np.array([{"a": 1}, None], dtype=object)
    with open(path, "wb") as file:
        np.save(file, array, allow_pickle=True)
    return f"{np.asarray(array).dtype} {np.asarray(array).shape}"
