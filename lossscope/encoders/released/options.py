"""What an original file of the VSE family says, read with care: options of known types, tensors that fit a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from lossscope.errors import InputError

from ..base import EncoderSpec, require_fit
from ..layers.pooled_resnet import with_counters
from ..types import Shape


def flag(options: Mapping[str, Any], name: str, absent: bool) -> bool:
    """A switch; `absent` where the file has none. Raises InputError when it is no bool."""
    value = options.get(name, absent)
    if not isinstance(value, bool):
        raise InputError(f"option {name} of the file must be true or false; got {value!r}")
    return value


def text(options: Mapping[str, Any], name: str, absent: str | None = None) -> str:
    """A text; `absent` where the file has none. Raises InputError when it is no text, or missing without one."""
    value = options.get(name, absent)
    if not isinstance(value, str):
        raise InputError(f"option {name} of the file must be text; got {value!r}")
    return value


def number(options: Mapping[str, Any], name: str, absent: float) -> float:
    """A finite number; `absent` where the file has none. Raises InputError when it is none."""
    value = options.get(name, absent)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < float("inf"):
        raise InputError(f"option {name} of the file must be a finite number; got {value!r}")
    return float(value)


def triplet_spec(options: Mapping[str, Any]) -> str:
    """The family's objective: `triplet_sh` with max_violation, else `triplet`, at the margin the file says; empty when
    it says neither.

    Raises InputError when the margin is no number >= 0.
    """
    if "margin" not in options and "max_violation" not in options:
        return ""
    margin = number(options, "margin", 0.2)
    if margin < 0:
        raise InputError(f"option margin of the file must be >= 0; got {margin}")
    return f"{'triplet_sh' if flag(options, 'max_violation', False) else 'triplet'}:margin={margin:g}"


def fitted(
    encoder: EncoderSpec, item_shape: Shape, vocabulary_size: int, weights: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """`weights`, which must be those of the encoder at these sizes, with batch counters where old files have none.

    Raises InputError naming the first tensor that is missing, left over or of another shape.
    """
    with torch.device("meta"):
        wanted = encoder.rebuild(item_shape, vocabulary_size, {}).state_dict()
    found = with_counters(weights, wanted)
    require_fit(wanted, found, type(encoder).__name__)
    return found


def tensor_of(tower: Mapping[str, Tensor], name: str, dimensions: int) -> Tensor:
    """The tensor of that name and number of dimensions. Raises InputError when there is none."""
    found = tower.get(name)
    if found is None or found.ndim != dimensions:
        got = "none" if found is None else f"one of shape {tuple(found.shape)}"
        raise InputError(f"{name} of the file must be a tensor of {dimensions} dimensions; got {got}")
    return found
