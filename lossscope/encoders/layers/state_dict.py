"""Whether tensors of a file are those of a model: the same names, shapes, kinds of numbers, and finite."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from lossscope.errors import InputError


def require_fit(expected: Mapping[str, Tensor], weights: Mapping[str, Tensor], whose: str) -> None:
    """Raise InputError that names the first difference, unless the weights have the expected names, shapes and kinds.

    A kind is floating, whole, true or false, complex or quantised, and dense or not: float16 may replace float32.

    Args:
        expected: the model's tensors.
        weights: the file's tensors.
        whose: the model, for the message.
    """
    missing, extra = sorted(expected.keys() - weights.keys()), sorted(weights.keys() - expected.keys())
    if missing or extra:
        raise InputError(
            f"weights must be those of {whose}, no more and no fewer; missing {missing[:3]} ({len(missing)}), "
            f"left over {extra[:3]} ({len(extra)})"
        )
    for name, tensor in expected.items():
        if tensor.shape != weights[name].shape:
            raise InputError(f"{name} must be {tuple(tensor.shape)}; got {tuple(weights[name].shape)}")
        if _number_kind(tensor) != _number_kind(weights[name]):
            raise InputError(
                f"{name} must be of {_number_kind(tensor)} numbers; got {_number_kind(weights[name])} ones"
            )


def require_finite(weights: Mapping[str, Tensor], whose: str) -> None:
    """Raise InputError that names the first tensor with NaN or infinity, or (on the device `meta`) without numbers."""
    for name, tensor in weights.items():
        if tensor.is_meta or not bool(torch.isfinite(tensor).all()):
            got = "none" if tensor.is_meta else "NaN or infinity"
            raise InputError(
                f"{name} of {whose} must hold finite numbers; got {got}. Its training diverged, or the file is "
                "incomplete"
            )


def _number_kind(tensor: Tensor) -> str:
    """Return the kind of a tensor's numbers and layout, as words."""
    dense = "dense" if tensor.layout is torch.strided else "sparse"
    if tensor.is_quantized:
        return f"{dense} quantised"
    if tensor.is_complex():
        return f"{dense} complex"
    if tensor.is_floating_point():
        return f"{dense} floating"
    return f"{dense} {'true or false' if tensor.dtype is torch.bool else 'whole'}"


def add_batch_counters(weights: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors and the batch counters of batch norms, zero where files from before torch 0.4.1 lack them."""
    counters = {k: v.new_zeros((), device="cpu") for k, v in expected.items() if k.endswith("num_batches_tracked")}
    return {**{k: v for k, v in counters.items() if k not in weights}, **weights}
