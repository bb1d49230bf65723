"""How precisely does a step compute: by how much do its gradients differ where mathematics says that they are equal?

Rows in another order are the same batch. Sums over them are then added in another order, so the gradients differ by
rounding, which is that of float32 wherever a step casts to it.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from .step_gradient import StepGradient

# relative, of steps whose loss is of this type
EXACT = {torch.float64: 1e-9, torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 2e-2}
ROUNDING = 1e-2  # a larger difference is another gradient
_MARGIN = 10.0  # other sums may be off by more than these


def precision_of(results: Mapping[str, StepGradient], dtype: torch.dtype) -> float:
    """Return the relative size below which two gradients of a step are the same.

    Args:
        results: of the calls `plain`, and `reversed` where it ran.
        dtype: of the embeddings.
    """
    plain, backwards = results["plain"], results.get("reversed")
    sides = [plain.queries, plain.candidates]
    precision = max(EXACT[dtype], EXACT.get(plain.dtype, 0.0))
    if all(_is_float32(x) for x in sides):
        precision = max(precision, EXACT[torch.float32])
    if backwards is None:
        return precision
    other = [backwards.queries.flip(0), backwards.candidates.flip(0)]
    norm = torch.cat(sides).norm().clamp(min=1e-300)
    off = float((torch.cat(other) - torch.cat(sides)).norm() / norm)
    return max(precision, _MARGIN * off) if off < ROUNDING else precision


def _is_float32(x: Tensor) -> bool:
    """Whether no number has more digits than float32 holds."""
    return bool((x.float().double() == x).all())
