"""Random orders from counter-based words: the same on any machine and in any version of numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .types import Rows


def random_words(n: int, seed: int, stream: int, row: int = 0) -> npt.NDArray[Any]:
    """Return n random words of 64 bits, a function of (seed, stream, row)."""
    key = np.array([seed & 0xFFFFFFFFFFFFFFFF, stream], dtype=np.uint64)
    counter = np.array([0, row, 0, 0], dtype=np.uint64)
    return np.asarray(np.random.Philox(key=key, counter=counter).random_raw(n))


def shuffle_rows(n: int, seed: int, epoch: int) -> Rows:
    """Return a permutation of 0..n-1 from the counter-based stream of (seed, epoch); the same on any machine."""
    return np.argsort(random_words(n, seed, epoch), kind="stable").astype(np.int64)
