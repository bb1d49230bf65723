"""Write a pickle of the same content with one entry changed, in any protocol."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
from numpy.random import Generator

from ..families import Inapplicable
from ..odd_arrays import odd_array, odd_entry
from ..trees import edit


def mutate(path: Path, rng: Generator) -> str:
    """Write the pickle anew and return what was changed."""
    try:
        content = pickle.loads(path.read_bytes(), encoding="latin1")
        tree, what = edit(content, rng, lambda value: odd_entry(value, rng, np.ndarray, odd_array))
        path.write_bytes(pickle.dumps(tree, protocol=int(rng.integers(6))))
    except Exception as error:
        raise Inapplicable("no pickle of plain content") from error
    return what
