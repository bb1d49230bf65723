"""Arrays of numpy, JAX, TensorFlow and others -> tensors, by the protocols that they have."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.utils.dlpack
from torch import Tensor

from lossscope.errors import InputError


def to_tensor(x: Any, what: str) -> Tensor:
    """Return a tensor as it is, and anything with `__dlpack__` or `__array__`, or a sequence of numbers, as a tensor.

    DLPack keeps the device and bfloat16; its memory is copied, since JAX promises that its arrays never change.
    Raises InputError for anything else.

    Args:
        x: the array.
        what: it is, for the message.
    """
    if isinstance(x, Tensor):
        return x
    try:
        return _convert(x)
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"{what} must be a tensor or an array of numbers; got {type(x).__name__}") from None


def _convert(x: Any) -> Tensor:
    if isinstance(x, np.ndarray):
        return torch.as_tensor(x)
    if hasattr(x, "__dlpack__"):
        try:
            return torch.utils.dlpack.from_dlpack(x).clone()
        except (AttributeError, BufferError, RuntimeError, TypeError, ValueError):  # a type that DLPack lacks, as bool
            if not hasattr(x, "__array__"):
                raise
    return torch.as_tensor(np.array(x)) if hasattr(x, "__array__") else torch.as_tensor(x)
