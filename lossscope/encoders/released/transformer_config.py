"""The configuration of a model of two transformers, from an untrusted file: known options of sane sizes, no others."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from lossscope.errors import InputError

from .options import tensor_of

_SIZES: Mapping[str, int] = {
    "hidden_size": 1 << 14, "intermediate_size": 1 << 16, "num_hidden_layers": 256, "num_attention_heads": 512,
    "vocab_size": 1 << 22, "max_position_embeddings": 1 << 15, "projection_size": 1 << 14, "image_size": 1 << 12,
    "patch_size": 1 << 10, "num_channels": 3,
}  # fmt: skip
_IDS = ("pad_token_id", "bos_token_id", "eos_token_id")
_SMALL = ("layer_norm_eps", "attention_dropout", "initializer_range", "initializer_factor")
_MOST = 1 << 33  # parameters of one tower
_STEEPEST = 30.0  # |logit_scale|, which CLIP keeps below ln 100, and |logit_bias|


def parts(options: Mapping[str, Any], name: str) -> dict[str, Any]:
    """text_config and vision_config with what makes the model of each. Raises InputError naming what is not sane."""
    wanted = ("text_config", "vision_config")
    if not all(isinstance(options.get(key), dict) for key in wanted):
        got = sorted(map(str, options))[:8]
        raise InputError(f"config.json of a {name} folder must hold text_config and vision_config; got {got}")
    return {key: {k: v for k, v in options[key].items() if _made_of(f"{k} of {key}", k, v)} for key in wanted}


def kept_parts(kept: Mapping[str, str], name: str) -> dict[str, Any]:
    """The configuration that a checkpoint keeps. Raises InputError when there is none, or it is no JSON object."""
    try:
        found = json.loads(kept["config"])
    except (KeyError, ValueError, RecursionError) as error:
        raise InputError(f"a checkpoint of a {name} must keep its configuration as JSON; got {error!r}") from error
    if not isinstance(found, dict):
        raise InputError(
            f"a checkpoint of a {name} must keep its configuration as an object; got {type(found).__name__}"
        )
    return found


def size(options: Mapping[str, Any], key: str, most: int, absent: int) -> int:
    """A whole number from 1 to `most`; `absent` where there is none. Raises InputError when it is none."""
    value = options.get(key, absent)
    if type(value) is not int or not 1 <= value <= most:
        raise InputError(f"{key} must be a whole number from 1 to {most}; got {_shown(value)}")
    return value


def configured(make: Callable[..., Any], config: Mapping[str, Any], name: str) -> Any:
    """The configuration of transformers. Raises InputError when it refuses it, or its sizes do not go together."""
    try:
        made = make(**config)
    except Exception as error:  # its checks raise what they like
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"configuration of a {name} must be one that transformers takes; {reason}") from error
    text, vision = made.text_config, made.vision_config
    for tower in (text, vision):
        if tower.hidden_size % tower.num_attention_heads:
            got = f"{tower.hidden_size} and {tower.num_attention_heads}"
            raise InputError(f"hidden_size of a {name} must be a multiple of num_attention_heads; got {got}")
    if vision.patch_size > vision.image_size:
        raise InputError(f"patch_size must be at most image_size; got {vision.patch_size} and {vision.image_size}")
    rows = text.vocab_size + text.max_position_embeddings
    cells = (vision.image_size // vision.patch_size) ** 2 + 3 * vision.patch_size**2
    if max(_numbers(text, rows), _numbers(vision, cells)) > _MOST:
        raise InputError(f"each tower of a {name} must be of at most {_MOST:,} parameters; its sizes come to more")
    return made


def learnt(weights: Mapping[str, Tensor], name: str, dimensions: int) -> float:
    """The one number of a learnt scale or bias. Raises InputError when it is none, or no such model's."""
    found = tensor_of(weights, name, dimensions)
    if found.numel() != 1 or not found.is_floating_point() or found.layout is not torch.strided:
        raise InputError(f"{name} of the file must be one number; got {tuple(found.shape)} of {found.dtype}")
    number = float(found)
    if not math.isfinite(number) or abs(number) > _STEEPEST:
        raise InputError(f"{name} of the file must be from -{_STEEPEST:g} to {_STEEPEST:g}; got {number}")
    return number


def _made_of(where: str, key: str, value: Any) -> bool:
    """Whether an option is one that makes the model. Raises InputError when its value is not sane."""
    if key in _SIZES:
        size({where: value}, where, _SIZES[key], 1)
    elif key in _IDS:
        if value is not None and (type(value) is not int or not 0 <= value < _SIZES["vocab_size"]):
            raise InputError(f"{where} must be the id of a token; got {_shown(value)}")
        return value is not None
    elif key in _SMALL:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 100:
            raise InputError(f"{where} must be a number from 0 to 100; got {_shown(value)}")
    elif key == "hidden_act":
        _require_activation(where, value)
    else:
        return False
    return True


def _require_activation(where: str, value: Any) -> None:
    try:
        from transformers.activations import ACT2FN
    except ImportError as error:
        raise InputError("CLIP and SigLIP need transformers; install lossscope[hf]") from error
    if not isinstance(value, str) or value not in ACT2FN:
        raise InputError(f"{where} must be an activation that transformers has; got {_shown(value)}")


def _numbers(tower: Any, rows: int) -> int:
    """About how many parameters a tower has."""
    width, inner = tower.hidden_size, tower.intermediate_size
    return int(tower.num_hidden_layers * width * (4 * width + 2 * inner) + rows * width)


def _shown(value: Any) -> str:
    try:
        return repr(value)[:60]
    except (ValueError, RecursionError):
        return type(value).__name__
