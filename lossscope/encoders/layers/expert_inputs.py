"""Videos as encoders take them: their experts, the frames of each expert, and a score over the present experts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn

from lossscope.errors import InputError

from ..types import EncodedBatch, Items, ItemShape


def expert_widths(shape: ItemShape, encoder: str) -> dict[str, int]:
    """Return expert -> width of its features, sorted by name. Raises InputError for items that are no videos."""
    names = sorted(n for n in shape if f"{n}.length" in shape) if isinstance(shape, Mapping) else []
    if not isinstance(shape, Mapping) or not names:
        raise InputError(f"{encoder} must be given videos, features of several experts by name; got items of {shape}")
    for name in names:
        if len(shape[name]) != 2 or f"{name}.time" not in shape:
            raise InputError(f"{name} must be (T, d), with {name}.time, in items for {encoder}; got {shape[name]}")
    return {name: shape[name][1] for name in names}


def module_keys(names: Iterable[str]) -> dict[str, str]:
    """Return expert -> its key in the names of weights, where no dot is allowed. Raises InputError for equal keys."""
    keys = {name: name.replace(".", "_") for name in names}
    invalid = [name for name, key in keys.items() if not key or hasattr(nn.ModuleDict, key)]
    if invalid or len(set(keys.values())) < len(keys):
        got = ", ".join(invalid or keys)
        raise InputError(f"experts must have names that differ in more than . and _, and name no method; got {got}")
    return keys


def item_shape_of(widths: Mapping[str, int], frames: int) -> dict[str, tuple[int, ...]]:
    """Return the shape of an item of these experts, as data sets of videos state it."""
    shape: dict[str, tuple[int, ...]] = {}
    for name, width in sorted(widths.items()):
        shape |= {name: (frames, width), f"{name}.length": (), f"{name}.time": (frames,), f"{name}.max": (width,)}
    return shape


def require_experts(items: Items, names: Iterable[str]) -> Mapping[str, Tensor]:
    """Return the items. Raises InputError that names the first of these experts which they lack."""
    if not isinstance(items, Mapping):
        raise InputError(f"items must be features of experts by name; got one tensor {tuple(items.shape)}")
    for name in names:
        if name not in items or f"{name}.length" not in items:
            raise InputError(f"items must hold {name} and {name}.length; got {', '.join(sorted(items))}")
    return items


def frame_mask(items: Mapping[str, Tensor], name: str) -> Tensor:
    """Return (n, T) bool, the frames that an expert has."""
    features = items[name]
    return torch.arange(features.shape[1], device=features.device) < items[f"{name}.length"][:, None]


def score_present_experts(images: EncodedBatch, texts: EncodedBatch) -> Tensor:
    """S = Σ_m w_m a_m ⟨t_m, v_m⟩ / Σ_m w_m a_m over experts m: (n, m). A video without any expert scores 0.

    Two matrix products and a division. Source: Miech et al. 2018; Liu et al. 2019.

    Args:
        images: global_ [a_m v_m], and in extra `present`, a (n, M).
        texts: global_ [w_m t_m], and in extra `weights`, w (m, M).
    """
    weight = images.extra["present"] @ texts.extra["weights"].T
    return images.vectors @ texts.vectors.T / weight.masked_fill(weight <= 0, 1)
