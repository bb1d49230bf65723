"""The configuration of a CLIP: as its folder states it, as its user does, or as far as shapes of tensors show it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from lossscope.errors import InputError

from ..types import ReleasedFile
from .clip_statements import state_activation, state_heads, state_normalisation
from .image_processor import normalisation_of
from .open_clip import build_configuration, token_ids
from .open_clip_models import Sizes
from .options import require_tensor
from .transformer_config import require_size, select_configs

_TABLES = ("text_model.embeddings.token_embedding.weight", "text_model.embeddings.position_embedding.weight")


def read_configuration(released: ReleasedFile, weights: Mapping[str, Tensor]) -> dict[str, Any]:
    """Return the configuration of a file, from the folder where it has one.

    Raises InputError where neither the file nor its user states the activation or the heads, or they contradict.

    Args:
        released: the file.
        weights: its tensors under Hugging Face's names.
    """
    if "vision_config" in released.options:
        config = select_configuration(_merge_older_parts(released.options))
    elif "model_cfg" in released.options:
        config = select_configuration(build_configuration(released.options))
    else:
        return {**_infer_configuration(released, weights), **state_normalisation(released)}
    _require_agreement(released, config)
    return {**config, **normalisation_of(released.options)}


def _merge_older_parts(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with text_config_dict and vision_config_dict of older files, as transformers reads them.

    Such a part replaces the newer one, its defaults included.
    """
    from transformers import CLIPTextConfig, CLIPVisionConfig

    merged = dict(options)
    for name, kind in (("text_config", CLIPTextConfig), ("vision_config", CLIPVisionConfig)):
        older = options.get(f"{name}_dict")
        if isinstance(older, Mapping) and older:
            checked = select_configs({"text_config": {}, "vision_config": {}, name: dict(older)}, "CLIP")[name]
            newer = options.get(name)
            merged[name] = {**(newer if isinstance(newer, dict) else {}), **kind(**checked).to_dict()}
    return merged


def select_configuration(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of a configuration that define the model. Raises InputError when they are missing or invalid."""
    return {
        **select_configs(options, "CLIP"),
        "projection_dim": require_size(options, "projection_dim", 1 << 14, 512),
        **{name: options[name] for name in ("image_mean", "image_std") if name in options},
    }


def _infer_configuration(released: ReleasedFile, weights: Mapping[str, Tensor]) -> dict[str, Any]:
    """Return the configuration that shapes show, with the activation and heads that the user states.

    Raises InputError that names the first tensor whose shape does not fit.
    """
    dim, width = require_tensor(weights, "visual_projection.weight", 2).shape
    text_width = require_tensor(weights, "text_projection.weight", 2).shape[1]
    vocabulary, context = (len(require_tensor(weights, name, 2)) for name in _TABLES)
    image, patch = _infer_picture(weights)
    text, vision = _infer_sizes(weights, "text_model", text_width), _infer_sizes(weights, "vision_model", width)
    vision |= {"image_size": image, "patch_size": patch}
    sizes = sizes_of({"text_config": text, "vision_config": vision, "projection_dim": dim})
    heads, activation = state_heads(released, sizes), state_activation(released, sizes)
    ids = {"vocab_size": vocabulary, "max_position_embeddings": context, **token_ids(vocabulary)}
    config = {
        "text_config": {"hidden_act": activation, **ids, **text, "num_attention_heads": heads.text},
        "vision_config": {"hidden_act": activation, **vision, "num_attention_heads": heads.image},
        "projection_dim": dim,
    }
    return select_configuration(config)


def sizes_of(config: Mapping[str, Any]) -> Sizes:
    """Return the sizes in a configuration, 0 for those it leaves to defaults."""
    text, vision = config["text_config"], config["vision_config"]
    return Sizes(
        dim=config["projection_dim"],
        width=vision.get("hidden_size", 0),
        layers=vision.get("num_hidden_layers", 0),
        patch=vision.get("patch_size", 0),
        inner=vision.get("intermediate_size", 0),
        text_width=text.get("hidden_size", 0),
        text_layers=text.get("num_hidden_layers", 0),
    )


def _require_agreement(released: ReleasedFile, config: Mapping[str, Any]) -> None:
    """Raise InputError where the user states another activation or other heads than the file's configuration."""
    if released.choices.get("model"):
        raise InputError(f"model is for files without a configuration; that of {released.path} says what it is")
    text, vision = config["text_config"], config["vision_config"]
    stated = {
        "activation": vision.get("hidden_act"),
        "heads": vision.get("num_attention_heads"),
        "text_heads": text.get("num_attention_heads"),
    }
    for name, value in stated.items():
        given = released.choices.get(name, str(value))
        if value is not None and given != str(value):
            raise InputError(f"{name} of {released.path} must be {value}, as its configuration says; got {given!r}")


def _infer_picture(weights: Mapping[str, Tensor]) -> tuple[int, int]:
    """Return the sides of a picture and of a patch. Raises InputError when the positions are no square of patches."""
    patch = require_tensor(weights, "vision_model.embeddings.patch_embedding.weight", 4).shape[-1]
    cells = len(require_tensor(weights, "vision_model.embeddings.position_embedding.weight", 2)) - 1
    side = math.isqrt(max(cells, 0))
    if not side or side * side != cells:
        raise InputError(f"positions of a CLIP's pictures must be a square number and one; got {cells + 1}")
    return side * patch, patch


def _infer_sizes(weights: Mapping[str, Tensor], tower: str, width: int) -> dict[str, int]:
    """Return the sizes of one tower."""
    layers = {name.split(".")[3] for name in weights if name.startswith(f"{tower}.encoder.layers.")}
    inner = len(require_tensor(weights, f"{tower}.encoder.layers.0.mlp.fc1.weight", 2))
    return {"hidden_size": width, "intermediate_size": inner, "num_hidden_layers": len(layers)}
