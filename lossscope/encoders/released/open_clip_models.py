"""Published CLIPs of two transformers, by open_clip's names: their sizes, and the heads that no tensor shows."""

from __future__ import annotations

import difflib
import re
from dataclasses import astuple, dataclass

from lossscope.errors import InputError

_QUICK = "-quickgelu"
_RESOLUTION = re.compile(r"(?<=\d\d|us)-\d{3}$")  # of the pictures, which the shapes of a file state


@dataclass(frozen=True)
class Sizes:
    """The sizes of a CLIP that shapes of tensors state; pictures may be of any size."""

    dim: int  # of the joint space
    width: int  # of the image tower
    layers: int
    patch: int
    inner: int  # width of the image tower's hidden layers
    text_width: int
    text_layers: int


@dataclass(frozen=True)
class Heads:
    """The attention heads of the two towers, which no tensor shows."""

    image: int
    text: int


_MODELS: dict[str, tuple[Sizes, Heads]] = {
    "ViT-S-32": (Sizes(384, 384, 12, 32, 1536, 384, 12), Heads(6, 6)),
    "ViT-S-32-alt": (Sizes(256, 384, 12, 32, 1536, 256, 10), Heads(6, 4)),
    "ViT-S-16": (Sizes(384, 384, 12, 16, 1536, 384, 12), Heads(6, 6)),
    "ViT-S-16-alt": (Sizes(256, 384, 12, 16, 1536, 256, 10), Heads(6, 4)),
    "ViT-M-32": (Sizes(512, 512, 12, 32, 2048, 512, 12), Heads(8, 8)),
    "ViT-M-32-alt": (Sizes(384, 512, 12, 32, 2048, 384, 12), Heads(8, 6)),
    "ViT-M-16": (Sizes(512, 512, 12, 16, 2048, 512, 12), Heads(8, 8)),
    "ViT-B-32": (Sizes(512, 768, 12, 32, 3072, 512, 12), Heads(12, 8)),
    "ViT-B-32-plus": (Sizes(640, 896, 12, 32, 3584, 640, 12), Heads(14, 10)),
    "ViT-B-16": (Sizes(512, 768, 12, 16, 3072, 512, 12), Heads(12, 8)),
    "ViT-B-16-plus": (Sizes(640, 896, 12, 16, 3584, 640, 12), Heads(14, 10)),
    "ViT-L-16": (Sizes(768, 1024, 24, 16, 4096, 768, 12), Heads(16, 12)),
    "ViT-L-14": (Sizes(768, 1024, 24, 14, 4096, 768, 12), Heads(16, 12)),
    "ViT-H-16": (Sizes(1024, 1280, 32, 16, 5120, 1024, 24), Heads(16, 16)),
    "ViT-H-14": (Sizes(1024, 1280, 32, 14, 5120, 1024, 24), Heads(16, 16)),
    "ViT-g-14": (Sizes(1024, 1408, 40, 14, 6144, 1024, 24), Heads(16, 16)),
    "ViT-bigG-14": (Sizes(1280, 1664, 48, 14, 8192, 1280, 32), Heads(16, 20)),
    "ViT-e-14": (Sizes(1280, 1792, 56, 14, 15360, 1280, 36), Heads(16, 20)),
}


def find_heads(sizes: Sizes) -> Heads | None:
    """Return the heads of the published models of these sizes, None when there is none."""
    return next((heads for known, heads in _MODELS.values() if known == sizes), None)


def describe_model(name: str, sizes: Sizes) -> tuple[Heads, str]:
    """Return heads and activation of the published model of that name.

    Raises InputError when no model has that name, or the model is of other sizes than the file.

    Args:
        name: as open_clip's, with `-336` and the like for larger pictures and `-quickgelu` for that activation.
        sizes: of the file.
    """
    base = _RESOLUTION.sub("", name.removesuffix(_QUICK))
    if base not in _MODELS:
        near = difflib.get_close_matches(base, _MODELS, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise InputError(f"model must be one of {', '.join(_MODELS)}, with {_QUICK} or without; got {name!r}{hint}")
    known, heads = _MODELS[base]
    if known != sizes:
        raise InputError(f"model={name} must be of the sizes of the file, {astuple(sizes)}; it is of {astuple(known)}")
    return heads, "quick_gelu" if name.endswith(_QUICK) else "gelu"
