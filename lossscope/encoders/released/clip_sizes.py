"""The options that describe a CLIP which is built from a configuration: what they are, and that none differs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from lossscope.errors import InputError

from ..types import ReleasedFile
from .clip_config import sizes_of
from .image_processor import named_normalisation
from .open_clip_models import describe_model

_SIZES = ("width", "depth", "heads", "patch", "dim", "context")  # which every converted file states


def size_options(settings: Any) -> dict[str, Any]:
    """Return the options that describe a model of transformers' configuration."""
    vision, text = settings.vision_config, settings.text_config
    return {
        "width": vision.hidden_size, "depth": vision.num_hidden_layers, "heads": vision.num_attention_heads,
        "patch": vision.patch_size, "dim": settings.projection_dim,
        "context": text.max_position_embeddings, "text_heads": text.num_attention_heads,
        "activation": vision.hidden_act,
    }  # fmt: skip


def described_options(settings: Any) -> dict[str, Any]:
    """Return the options of an opened model's spec: those that differ from what the others imply."""
    options = size_options(settings)
    del options["activation"]
    if options["text_heads"] == options["heads"]:
        del options["text_heads"]
    return options


def require_stored(options: Any, config: Mapping[str, Any], settings: Any, sizes: bool) -> None:
    """Raise InputError where an option of a CLIP differs from the configuration that it is built from.

    Args:
        options: the CLIP.
        config: that it is built from.
        settings: the same, of transformers.
        sizes: whether its sizes are compared too, those of a plain `clip` apart, which says none.
    """
    stored = size_options(settings)
    stated = {"activation": options.activation, "text_heads": options.text_heads}
    if sizes:
        usual = {item.name: item.default for item in fields(options)}
        stated |= {name: getattr(options, name) for name in _SIZES if getattr(options, name) != usual[name]}
    if options.model is not None:
        heads, activation = describe_model(options.model, sizes_of(config))
        stated |= {"activation": activation, "heads": heads.image, "text_heads": heads.text}
    for name, value in stated.items():
        if value not in (None, stored[name]):
            raise _refuse(name, stored[name], value)
    _require_normalisation(options.mean_std, config)


def require_choices(released: ReleasedFile, config: Mapping[str, Any], settings: Any) -> None:
    """Raise InputError where what the user says of a file differs from the model that is opened."""
    if "path" in released.choices:
        raise InputError(f"path is for training a model from a folder; got it for {released.path}")
    stored = size_options(settings)
    for name in _SIZES:
        if released.choices.get(name, str(stored[name])) != str(stored[name]):
            raise _refuse(name, stored[name], released.choices[name])
    _require_normalisation(released.choices.get("mean_std"), config)


def _require_normalisation(name: str | None, config: Mapping[str, Any]) -> None:
    stored = {key: config[key] for key in ("image_mean", "image_std") if key in config}
    if name is not None and named_normalisation(name) != stored:
        raise _refuse("mean_std", ", ".join(f"{key}={value}" for key, value in stored.items()) or "openai", name)


def _refuse(name: str, stored: Any, given: Any) -> InputError:
    return InputError(f"{name} of the CLIP in this file is {stored} and stays so; got {given}")
