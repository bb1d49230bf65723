"""What users give as matrices: arrays as tensors, embeddings as unit vectors with their cosines."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from lossscope.core.similarity import normalise
from lossscope.engine.direction_rows import HALF_TYPES
from lossscope.engine.one_batch import plain_mode
from lossscope.errors import InputError


def as_tensor(x: Any, what: str) -> Tensor | None:
    """Return a tensor as it is, and an array of numpy or any other sequence of numbers as a tensor.

    Raises InputError for texts and anything else that is no matrix of numbers.
    """
    if x is None or isinstance(x, Tensor):
        return x
    try:
        return torch.as_tensor(x)
    except (TypeError, ValueError, RuntimeError) as error:
        shape = "(images, captions) similarities" if what == "S" else "(n, d) embeddings, not texts or pictures"
        raise InputError(
            f"{what} must be a matrix of numbers, {shape}; got {type(x).__name__}. Write watch(S), or "
            "watch(images=..., captions=...)"
        ) from error


def unit_rows(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """Return detached rows of unit length, of one type, float32 or wider."""
    with plain_mode(first.device):
        wide = [x.float() if x.dtype in HALF_TYPES else x for x in (first.detach(), second.detach())]
        dtype = torch.promote_types(wide[0].dtype, wide[1].dtype)
        V, T = (normalise(x.to(dtype)) for x in wide)
        return V, T
