"""Products of float32 in float32: TF32, whose similarities are off by a thousandth, may be allowed.

A training loop allows it in products of matrices; in convolutions and recurrent layers torch allows it of itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch


@contextlib.contextmanager
def float32_products() -> Iterator[None]:
    """Multiply and convolve float32 in float32 inside, whatever the process allows; its settings are put back."""
    with _products(), _layers():
        yield


@contextlib.contextmanager
def _products() -> Iterator[None]:
    try:
        before = torch.get_float32_matmul_precision()
    except RuntimeError:  # it was set by the newer of torch's two ways, which the older one does not read
        with _ieee(torch.backends.cuda.matmul):
            yield
        return
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@contextlib.contextmanager
def _layers() -> Iterator[None]:
    cudnn: Any = torch.backends.cudnn
    try:
        before = cudnn.allow_tf32
    except RuntimeError:  # see above
        with _ieee(cudnn.conv), _ieee(cudnn.rnn):
            yield
        return
    cudnn.allow_tf32 = False
    try:
        yield
    finally:
        cudnn.allow_tf32 = before


@contextlib.contextmanager
def _ieee(setting: Any) -> Iterator[None]:
    before = setting.fp32_precision
    setting.fp32_precision = "ieee"
    try:
        yield
    finally:
        setting.fp32_precision = before
