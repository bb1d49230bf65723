"""Options and tensors of released files, with checks: options of known types, tensors that fit a model."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from lossscope.errors import InputError
from lossscope.io.json_files import shorten

from ..base import EncoderSpec, require_fit
from ..layers.state_dict import add_batch_counters
from ..types import ItemShape

_GREATEST = sys.float_info.max  # whole numbers above it are no floats


def read_flag(options: Mapping[str, Any], name: str, default: bool) -> bool:
    """Return an option that is a bool, `default` where the file has none. Raises InputError when it is no bool."""
    value = options.get(name, default)
    if not isinstance(value, bool):
        raise InputError(f"option {name} of the file must be true or false; got {shorten(value)}")
    return value


def read_text(options: Mapping[str, Any], name: str, default: str | None = None) -> str:
    """Return an option that is text, `default` where the file has none. Raises InputError when there is no text."""
    value = options.get(name, default)
    if not isinstance(value, str):
        raise InputError(f"option {name} of the file must be text; got {shorten(value)}")
    return value


def read_number(options: Mapping[str, Any], name: str, default: float) -> float:
    """Return an option that is a finite number, `default` where the file has none. Raises InputError otherwise."""
    value = options.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _GREATEST:
        raise InputError(f"option {name} of the file must be a finite number; got {shorten(value)}")
    return float(value)


def read_count(options: Mapping[str, Any], name: str, default: int) -> int:
    """Return an option that is a whole number >= 1, `default` where the file has none. Raises InputError otherwise."""
    value = options.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"option {name} of the file must be a whole number of at least 1; got {shorten(value)}")
    return value


def count_layers(weights: Mapping[str, Tensor], rnn: str) -> int:
    """Return the number of layers of a GRU of that name, at least 1; tensors of further ones are then left over."""
    layers = 1
    while f"{rnn}.weight_ih_l{layers}" in weights:
        layers += 1
    return layers


def triplet_spec(options: Mapping[str, Any]) -> str:
    """Return the objective of VSE's family at the margin in the options: `triplet_sh` with max_violation, or `triplet`.

    Empty when the options name neither margin nor max_violation. Raises InputError when the margin is no number >= 0.
    """
    if "margin" not in options and "max_violation" not in options:
        return ""
    margin = read_number(options, "margin", 0.2)
    if margin < 0:
        raise InputError(f"option margin of the file must be >= 0; got {margin}")
    return f"{'triplet_sh' if read_flag(options, 'max_violation', False) else 'triplet'}:margin={margin:g}"


def fit_weights(
    encoder: EncoderSpec, item_shape: ItemShape, vocabulary_size: int, weights: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Return the weights with the batch counters that old files lack, after a check that they fit the encoder.

    Raises InputError that names the first tensor that is missing, left over or of another shape at these sizes.
    """
    with torch.device("meta"):
        expected = encoder.rebuild(item_shape, vocabulary_size, {}).state_dict()
    completed = add_batch_counters(weights, expected)
    require_fit(expected, completed, type(encoder).__name__)
    return completed


def require_agreement(options: Mapping[str, Any], of_tensors: Mapping[str, Any]) -> None:
    """Raise InputError for the first option that contradicts what the tensors of the file show.

    Args:
        options: of the file; one that is not there agrees.
        of_tensors: name of an option -> the value that its tensors have.
    """
    for name, value in of_tensors.items():
        given = options.get(name, value)
        if type(given) is not type(value) or given != value:
            raise InputError(f"option {name} of the file must be {value!r}, as its tensors are; got {shorten(given)}")


def require_tensor(tower: Mapping[str, Tensor], name: str, dimensions: int) -> Tensor:
    """Return the tensor of that name and number of dimensions. Raises InputError when there is none."""
    tensor = tower.get(name)
    if tensor is None or tensor.ndim != dimensions:
        got = "none" if tensor is None else f"one of shape {tuple(tensor.shape)}"
        raise InputError(f"{name} of the file must be a tensor of {dimensions} dimensions; got {got}")
    return tensor
