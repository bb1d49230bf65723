"""Videos as encoders take them: which experts there are, which of their frames, and a score over those present."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn

from lossscope.errors import InputError

from ..types import EncodedBatch, Items, Shape


def experts_of(shape: Shape, who: str) -> dict[str, int]:
    """Expert -> width of its features, sorted by name. Raises InputError for items that are no videos."""
    names = sorted(n for n in shape if f"{n}.length" in shape) if isinstance(shape, Mapping) else []
    if not isinstance(shape, Mapping) or not names:
        raise InputError(f"{who} must be given videos, features of several experts by name; got items of {shape}")
    for name in names:
        if len(shape[name]) != 2 or f"{name}.time" not in shape:
            raise InputError(f"{name} must be (T, d), with {name}.time, in items for {who}; got {shape[name]}")
    return {name: shape[name][1] for name in names}


def keys_of(names: Iterable[str]) -> dict[str, str]:
    """Expert -> its name in the names of weights, where a dot is not allowed. Raises InputError when two are one."""
    found = {name: name.replace(".", "_") for name in names}
    taken = [name for name, key in found.items() if not key or hasattr(nn.ModuleDict, key)]
    if taken or len(set(found.values())) < len(found):
        got = ", ".join(taken or found)
        raise InputError(f"experts must have names that differ in more than . and _, and name no method; got {got}")
    return found


def shape_of(widths: Mapping[str, int], frames: int) -> dict[str, tuple[int, ...]]:
    """The shape of an item of these experts, as data sets of videos tell it."""
    found: dict[str, tuple[int, ...]] = {}
    for name, width in sorted(widths.items()):
        found |= {name: (frames, width), f"{name}.length": (), f"{name}.time": (frames,), f"{name}.max": (width,)}
    return found


def videos(items: Items, names: Iterable[str]) -> Mapping[str, Tensor]:
    """The items, which must hold these experts. Raises InputError naming the first that they do not."""
    if not isinstance(items, Mapping):
        raise InputError(f"items must be features of experts by name; got one tensor {tuple(items.shape)}")
    for name in names:
        if name not in items or f"{name}.length" not in items:
            raise InputError(f"items must hold {name} and {name}.length; got {', '.join(sorted(items))}")
    return items


def present(items: Mapping[str, Tensor], name: str) -> Tensor:
    """(n, T) bool: the frames that an expert has."""
    features = items[name]
    return torch.arange(features.shape[1], device=features.device) < items[f"{name}.length"][:, None]


def over_present(images: EncodedBatch, texts: EncodedBatch) -> Tensor:
    """S = Σ_m w_m a_m ⟨t_m, v_m⟩ / Σ_m w_m a_m over experts m: (n, m). A video without any expert scores 0.

    images: global_ [a_m v_m], extra `present` a (n, M); texts: global_ [w_m t_m], extra `weights` w (m, M).
    Two matrix products and a division. Source: Miech et al. 2018; Liu et al. 2019.
    """
    weight = images.extra["present"] @ texts.extra["weights"].T
    return images.vectors @ texts.vectors.T / weight.masked_fill(weight <= 0, 1)
