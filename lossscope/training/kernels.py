"""Switch torch's deterministic kernels: on in training, off in probes, as some operations have none."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def deterministic_kernels(on: bool) -> Iterator[None]:
    """Use deterministic kernels, or any, inside; restore the setting of the process after it."""
    if on and torch.cuda.is_available():
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS reads it when a process first uses it
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(on)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)
