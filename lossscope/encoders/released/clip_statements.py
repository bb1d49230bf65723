"""What no tensor of a CLIP's file shows, activation, heads and mean and deviation of pixels, as its user states it."""

from __future__ import annotations

from collections.abc import Mapping

from lossscope.errors import InputError

from ..types import ReleasedFile
from .image_processor import named_normalisation
from .open_clip_models import Heads, Sizes, describe_model, find_heads

OPENAI_SCALARS = ("input_resolution", "context_length", "vocab_size")  # in OpenAI's files only, not parameters
_NO_TENSOR = "which no tensor shows"


def state_activation(released: ReleasedFile, sizes: Sizes) -> str:
    """Return the activation: OpenAI's, the user's, or that of the model the user names."""
    given, name = released.choices.get("activation", "").replace("-", "_") or None, released.choices.get("model")
    named = describe_model(name, sizes)[1] if name else None
    if is_openais(released):
        if {given, named} - {None, "quick_gelu"}:
            got = name if named == "gelu" else given
            raise InputError(f"activation of {released.path} must be quick_gelu, as in all of OpenAI's; got {got!r}")
        return "quick_gelu"
    if given is None and named is None:
        raise InputError(
            f"{released.path} needs its activation, {_NO_TENSOR}. Pass --encoder-option activation=quick_gelu "
            "for OpenAI's weights and open_clip's models in -quickgelu. Pass --encoder-option "
            "activation=gelu for open_clip's other models, or the open_clip name, as --encoder-option "
            "model=ViT-H-14"
        )
    if None not in (given, named) and given != named:
        raise InputError(f"activation of model={name} must be {named}; got {given!r}")
    if given not in (None, "gelu", "quick_gelu"):
        raise InputError(f"activation must be gelu or quick_gelu; got {given!r}")
    return given or named or ""


def state_heads(released: ReleasedFile, sizes: Sizes) -> Heads:
    """Return the heads: the user's, those of the model the user names, OpenAI's, or those of the published sizes."""
    choices, certain = released.choices, None
    if choices.get("model"):
        certain = describe_model(choices["model"], sizes)[0]
    elif is_openais(released):
        certain = Heads(max(sizes.width // 64, 1), max(sizes.text_width // 64, 1))
    image, text = _read_heads(choices, "heads"), _read_heads(choices, "text_heads")
    usual = certain or find_heads(sizes)
    if usual is None and (image is None or text is None):
        raise InputError(
            f"{released.path} needs its attention heads, {_NO_TENSOR}; its sizes are those of no published "
            f"CLIP. Pass --encoder-option heads=N for its image tower of width {sizes.width} and "
            f"--encoder-option text_heads=N for its text tower of width {sizes.text_width}"
        )
    usual = usual or Heads(0, 0)
    stated = Heads(image or usual.image, text or usual.text)
    for option, width, number in (("heads", sizes.width, stated.image), ("text_heads", sizes.text_width, stated.text)):
        if width % number:
            raise InputError(f"{option} of {released.path} must divide {width}, the width of its tower; got {number}")
    if certain not in (None, stated):
        raise InputError(
            f"heads of {released.path} must be {usual.image} and text_heads {usual.text}, as its model has them; got "
            f"{stated.image} and {stated.text}"
        )
    return stated


def state_normalisation(released: ReleasedFile) -> dict[str, list[float]]:
    """Return mean and deviation of pixels as the user names them; {} for those of CLIP, which OpenAI's have."""
    name = released.choices.get("mean_std", "openai")
    if is_openais(released) and name != "openai":
        raise InputError(f"mean_std of {released.path} must be openai, as in all of OpenAI's; got {name!r}")
    return named_normalisation(name)


def is_configured(released: ReleasedFile) -> bool:
    """Return whether a configuration beside the weights says what the model is."""
    return "vision_config" in released.options or "model_cfg" in released.options


def is_openais(released: ReleasedFile) -> bool:
    """Return whether a file has the three numbers that OpenAI's files hold beside the weights."""
    return all(name in released.towers[0] for name in OPENAI_SCALARS)


def _read_heads(choices: Mapping[str, str], name: str) -> int | None:
    text = choices.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and 0 < int(text[:9]) <= 512):
        raise InputError(f"{name} must be a whole number from 1 to 512; got {text!r}")
    return int(text)
