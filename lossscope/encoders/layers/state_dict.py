"""Whether tensors of a file are those of a model: the same names, shapes, kinds of numbers, and numbers at all."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from lossscope.errors import InputError


def require_fit(wanted: Mapping[str, Tensor], found: Mapping[str, Tensor], whose: str) -> None:
    """Raise InputError unless `found` has just the names, shapes and kinds of `wanted`, telling the first that differ.

    A kind is floating, whole, true or false, complex or quantised, and dense or not: float16 may stand for float32.
    """
    missing, extra = sorted(wanted.keys() - found.keys()), sorted(found.keys() - wanted.keys())
    if missing or extra:
        raise InputError(
            f"weights must be those of {whose}, no more and no fewer; missing {missing[:3]} ({len(missing)}), "
            f"left over {extra[:3]} ({len(extra)})"
        )
    for name, tensor in wanted.items():
        if tensor.shape != found[name].shape:
            raise InputError(f"{name} must be {tuple(tensor.shape)}; got {tuple(found[name].shape)}")
        if _kind(tensor) != _kind(found[name]):
            raise InputError(f"{name} must be of {_kind(tensor)} numbers; got {_kind(found[name])} ones")


def require_finite(weights: Mapping[str, Tensor], whose: str) -> None:
    """Raise InputError naming the first tensor that holds NaN or infinity, or, as on `meta`, no numbers at all."""
    for name, tensor in weights.items():
        if tensor.is_meta or not bool(torch.isfinite(tensor).all()):
            got = "none" if tensor.is_meta else "NaN or infinity"
            raise InputError(
                f"{name} of {whose} must hold finite numbers; got {got}. Its training diverged, or it is cut"
            )


def _kind(tensor: Tensor) -> str:
    dense = "dense" if tensor.layout is torch.strided else "sparse"
    if tensor.is_quantized:
        return f"{dense} quantised"
    if tensor.is_complex():
        return f"{dense} complex"
    if tensor.is_floating_point():
        return f"{dense} floating"
    return f"{dense} {'true or false' if tensor.dtype is torch.bool else 'whole'}"
