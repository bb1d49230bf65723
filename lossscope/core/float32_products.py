"""Products of float32 in float32: a training loop may have allowed TF32, whose similarities are off by a thousandth."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def float32_products() -> Iterator[None]:
    """Multiply matrices of float32 in float32 inside, whatever the process has allowed; its setting is put back."""
    try:
        before = torch.get_float32_matmul_precision()
    except RuntimeError:  # it was set by the newer of torch's two ways, which the older one does not read
        with _newer_way():
            yield
        return
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@contextlib.contextmanager
def _newer_way() -> Iterator[None]:
    setting = torch.backends.cuda.matmul
    before = setting.fp32_precision
    setting.fp32_precision = "ieee"
    try:
        yield
    finally:
        setting.fp32_precision = before
