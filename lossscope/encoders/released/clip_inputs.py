"""How a CLIP's file has its pictures and captions read, and what is assumed where it does not say."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from ..types import ReleasedFile
from .clip import has_openai_names
from .clip_statements import is_configured, is_openais
from .image_processor import reading_of

_READING = {"fit": "short-side", "resample": "bicubic", "rgb": "last"}  # of OpenAI and open_clip
_FOLDER_READING = {"fit": "short-side-floor", "resample": "bicubic", "rgb": "on-white"}  # of transformers, by default


def read_reading(released: ReleasedFile, side: int) -> dict[str, str]:
    """Return how pictures are read: as a folder says, else as its authors' code does."""
    return {**reading_of(released.options, side, _usual_reading(released)), "size": str(side)}


def cleaning_of(released: ReleasedFile) -> str:
    """Return the clean-up of captions: that of OpenAI or of open_clip, or none, as of transformers."""
    if not has_openai_names(released):
        return ""
    return "clip" if is_openais(released) else "open_clip"


def assumptions(released: ReleasedFile, weights: Mapping[str, Tensor]) -> tuple[str, ...]:
    """Return notices on what a file without a configuration leaves open, and on weights that OpenAI's code rounds."""
    if is_openais(released):
        return _rounding_notices(weights)
    if is_configured(released):
        return ()
    pixels, reading = released.choices.get("mean_std", "openai"), _listed(_usual_reading(released))
    return (
        f"WARNING: {released.path} has no configuration: assumed are mean and deviation of pixels mean_std={pixels} "
        f"(--encoder-option mean_std=imagenet or inception for others), {reading}, an image pooled at its class "
        "token and a caption at its end; no tensor shows them",
    )


def _usual_reading(released: ReleasedFile) -> Mapping[str, str]:
    return _READING if has_openai_names(released) else _FOLDER_READING


def _rounding_notices(weights: Mapping[str, Tensor]) -> tuple[str, ...]:
    projection = weights["visual_projection.weight"]
    if bool((projection.half().to(projection.dtype) == projection).all()):
        return ()
    return (
        "the weights are of single precision and used so; OpenAI's clip.load rounds those of linear layers to half "
        "precision first, which changes vectors by about 2e-4",
    )


def _listed(values: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())
