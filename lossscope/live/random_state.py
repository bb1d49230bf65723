"""Leave the random generators as they are."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


@contextmanager
def unchanged_random_state() -> Iterator[None]:
    """Restore the generators of Python, numpy and torch when the context ends."""
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002 - the user's losses draw from it
    try:
        uses_gpus = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
        with torch.random.fork_rng(range(torch.cuda.device_count()) if uses_gpus else ()):
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002
