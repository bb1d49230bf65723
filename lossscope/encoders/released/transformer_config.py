"""The configuration of a model of two transformers, from an untrusted file: only known options of valid sizes pass."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from lossscope.errors import InputError, needing
from lossscope.io.json_files import parse_json, shorten

from .options import require_tensor

_SIZES: Mapping[str, int] = {
    "hidden_size": 1 << 14, "intermediate_size": 1 << 16, "num_hidden_layers": 256, "num_attention_heads": 512,
    "vocab_size": 1 << 22, "max_position_embeddings": 1 << 15, "projection_size": 1 << 14, "image_size": 1 << 12,
    "patch_size": 1 << 10, "num_channels": 3,
}  # fmt: skip
_TOKEN_IDS = ("pad_token_id", "bos_token_id", "eos_token_id")
_SMALL_NUMBERS = ("layer_norm_eps", "attention_dropout", "initializer_range", "initializer_factor")
_MAX_PARAMETERS = 1 << 33  # parameters of one tower
_MAX_SCALE = 30.0  # |logit_scale|, which CLIP keeps below ln 100, and |logit_bias|


def select_configs(options: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the options of text_config and vision_config that define the model. Raises InputError for invalid ones."""
    keys = ("text_config", "vision_config")
    if not all(isinstance(options.get(key), dict) for key in keys):
        got = sorted(map(str, options))[:8]
        raise InputError(f"config.json of a {name} folder must hold text_config and vision_config; got {got}")
    return {key: {k: v for k, v in options[key].items() if _is_model_option(f"{k} of {key}", k, v)} for key in keys}


def parse_stored_config(stored_files: Mapping[str, str], name: str) -> dict[str, Any]:
    """Return the configuration that a checkpoint stores. Raises InputError when there is none, or no JSON object."""
    try:
        config = parse_json(stored_files["config"], "it")
    except (KeyError, InputError) as error:
        raise InputError(f"a checkpoint of a {name} must store its configuration as JSON; got {error!r}") from error
    if not isinstance(config, dict):
        raise InputError(
            f"a checkpoint of a {name} must store its configuration as an object; got {type(config).__name__}"
        )
    return config


def require_size(options: Mapping[str, Any], key: str, maximum: int, default: int) -> int:
    """Return a whole number from 1 to `maximum`; `default` where there is none. Raises InputError otherwise."""
    value = options.get(key, default)
    if type(value) is not int or not 1 <= value <= maximum:
        raise InputError(f"{key} must be a whole number from 1 to {maximum}; got {shorten(value)}")
    return value


def build_config(build: Callable[..., Any], options: Mapping[str, Any], name: str) -> Any:
    """Return the configuration of transformers. Raises InputError when it is refused or its sizes do not match."""
    try:
        config = build(**options)
    except Exception as error:  # its checks can raise anything
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"configuration of a {name} must be one that transformers takes; {reason}") from error
    text, vision = config.text_config, config.vision_config
    for tower in (text, vision):
        if tower.hidden_size % tower.num_attention_heads:
            got = f"{tower.hidden_size} and {tower.num_attention_heads}"
            raise InputError(f"hidden_size of a {name} must be a multiple of num_attention_heads; got {got}")
    if vision.patch_size > vision.image_size:
        raise InputError(f"patch_size must be at most image_size; got {vision.patch_size} and {vision.image_size}")
    text_rows = text.vocab_size + text.max_position_embeddings
    image_rows = (vision.image_size // vision.patch_size) ** 2 + 3 * vision.patch_size**2
    if max(_count_parameters(text, text_rows), _count_parameters(vision, image_rows)) > _MAX_PARAMETERS:
        raise InputError(
            f"each tower of a {name} must be of at most {_MAX_PARAMETERS:,} parameters; its sizes come to more"
        )
    return config


def read_scalar(weights: Mapping[str, Tensor], name: str, dimensions: int) -> float:
    """Return the one number of a learnt scale or bias. Raises InputError when it is not one, or out of range."""
    tensor = require_tensor(weights, name, dimensions)
    if tensor.numel() != 1 or not tensor.is_floating_point() or tensor.layout is not torch.strided:
        raise InputError(f"{name} of the file must be one number; got {tuple(tensor.shape)} of {tensor.dtype}")
    number = float(tensor)
    if not math.isfinite(number) or abs(number) > _MAX_SCALE:
        raise InputError(f"{name} of the file must be from -{_MAX_SCALE:g} to {_MAX_SCALE:g}; got {number}")
    return number


def _is_model_option(where: str, key: str, value: Any) -> bool:
    """Return whether an option defines the model. Raises InputError when its value is invalid."""
    if key in _SIZES:
        require_size({where: value}, where, _SIZES[key], 1)
    elif key in _TOKEN_IDS:
        if value is not None and (type(value) is not int or not 0 <= value < _SIZES["vocab_size"]):
            raise InputError(f"{where} must be the id of a token; got {shorten(value)}")
        return value is not None
    elif key in _SMALL_NUMBERS:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 100:
            raise InputError(f"{where} must be a number from 0 to 100; got {shorten(value)}")
    elif key == "hidden_act":
        _require_activation(where, value)
    else:
        return False
    return True


def _require_activation(where: str, value: Any) -> None:
    with needing("hf", "CLIP and SigLIP need transformers"):
        from transformers.activations import ACT2FN
    if not isinstance(value, str) or value not in ACT2FN:
        raise InputError(f"{where} must be an activation that transformers has; got {shorten(value)}")


def _count_parameters(tower: Any, rows: int) -> int:
    """Return about how many parameters a tower has."""
    width, inner = tower.hidden_size, tower.intermediate_size
    return int(tower.num_hidden_layers * width * (4 * width + 2 * inner) + rows * width)
