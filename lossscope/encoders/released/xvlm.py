"""X-VLM's files: which tensors are the model's, what their shapes tell, and bias tables for another window."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from lossscope.errors import InputError

from ..layers.cross_encoder import HEAD
from ..layers.swin import HEAD as SWIN_HEAD
from ..types import ReleasedFile
from .options import tensor_of

_CROSS = re.compile(r"text_encoder\.(bert\.)?encoder\.layer\.\d+\.crossattention\.self\.key\.weight")
_REBUILT = ("position_ids", "relative_position_index", "attn_mask")
_HEADS = ("text_encoder.cls.", "bbox_head.")
_TABLE = "relative_position_bias_table"
_PROJ = "vision_encoder.patch_embed.proj.weight"


def is_xvlm(original: ReleasedFile) -> bool:
    """Whether a file holds an image tower under X-VLM's name and a text body with cross attention."""
    tower = original.towers[0]
    seeing = any(name.startswith("vision_encoder.") for name in tower)
    return len(original.towers) == 1 and seeing and any(_CROSS.fullmatch(name) for name in tower)


def weights_of(original: ReleasedFile) -> tuple[dict[str, Tensor], tuple[str, ...]]:
    """The model's tensors by name, without the `bert.` of pretrained files, and the names left out on purpose.

    Left out: heads of pretraining (masked words, boxes), and buffers that follow from the sizes. Raises InputError
    when the image tower is no Swin (X-VLM with CLIP's or DeiT's vision transformer).
    """
    tower = original.towers[0]
    named = {name.replace("text_encoder.bert.", "text_encoder.", 1): name for name in tower}
    ignored = {ours for ours in named if ours.startswith(_HEADS) or ours.rpartition(".")[2] in _REBUILT}
    if not any(_TABLE in name for name in tower):
        raise InputError(f"the image tower of {original.path} must be a Swin; X-VLM's others can not be opened")
    found = {ours: tower[theirs] for ours, theirs in named.items() if ours not in ignored}
    return found, tuple(named[ours] for ours in sorted(ignored))


def sizes(weights: Mapping[str, Tensor]) -> dict[str, Any]:
    """The options of the encoder that shapes tell. Raises InputError when one is missing or of an unknown kind."""
    embed, _, patch, _ = tensor_of(weights, _PROJ, 4).shape
    word = tensor_of(weights, "text_encoder.embeddings.word_embeddings.weight", 2)
    layers = _counted(weights, r"text_encoder\.encoder\.layer\.(\d+)\..+")
    fused = _counted(weights, r"text_encoder\.encoder\.layer\.(\d+)\.crossattention\..+")
    stages = range(_counted(weights, r"vision_encoder\.layers\.(\d+)\..+"))
    depths = [_counted(weights, rf"vision_encoder\.layers\.{i}\.blocks\.(\d+)\..+") for i in stages]
    if embed % SWIN_HEAD or word.shape[1] % HEAD or not 0 < fused < layers:
        got = f"{embed}, {word.shape[1]}, {layers} and {fused}"
        raise InputError(f"widths of the file must be multiples of {SWIN_HEAD} and {HEAD}, with layers; got {got}")
    return {
        "embed": embed, "patch": patch, "depths": "/".join(map(str, depths)), "window": window_of(weights),
        "width": word.shape[1], "layers": layers, "fused": fused,
        "positions": tensor_of(weights, "text_encoder.embeddings.position_embeddings.weight", 2).shape[0],
        "dim": tensor_of(weights, "text_proj.weight", 2).shape[0],
    }  # fmt: skip


def window_of(weights: Mapping[str, Tensor]) -> int:
    """Tokens of the side of a window, w, from the (2 w − 1)² rows of the first bias table."""
    rows = tensor_of(weights, f"vision_encoder.layers.0.blocks.0.attn.{_TABLE}", 2).shape[0]
    window = (math.isqrt(rows) + 1) // 2
    if (2 * window - 1) ** 2 != rows:
        raise InputError(f"a bias table must have (2 w - 1)² rows for windows of w; got {rows}")
    return window


def whole(options: Mapping[str, Any], name: str, absent: int) -> int:
    """A whole number; `absent` where the file has none. Raises InputError when it is none."""
    value = options.get(name, absent)
    if type(value) is not int:
        raise InputError(f"option {name} of the file must be a whole number; got {value!r}")
    return value


def pixels_of(original: ReleasedFile, patch: int, stages: int, window: int) -> int:
    """Side of the pictures: from the mask of the first stage's windows; without one, the last stage is one window."""
    mask = original.towers[0].get("vision_encoder.layers.0.blocks.1.attn_mask")
    across = math.isqrt(mask.shape[0]) if mask is not None and mask.ndim == 3 else 1 << (stages - 1)
    return across * window * patch


def resized(weights: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The same, bias tables stretched (bicubic) to the windows of the model whose tensors are `wanted`."""
    return {
        name: _stretched(x, wanted[name]) if name in wanted and _TABLE in name else x for name, x in weights.items()
    }


def _stretched(table: Tensor, wanted: Tensor) -> Tensor:
    """((2 w − 1)², heads) -> a table for windows of another size."""
    old, new = (math.isqrt(len(one)) for one in (table, wanted))
    if old == new or old * old != len(table):
        return table
    grid = table.float().T.reshape(1, -1, old, old)
    grid = torch.nn.functional.interpolate(grid, size=(new, new), mode="bicubic", align_corners=False)
    return grid.reshape(-1, new * new).T.to(table.dtype).contiguous()


def _counted(weights: Mapping[str, Tensor], pattern: str) -> int:
    """How many numbers the group of the pattern takes among the names."""
    return len({found[1] for name in weights if (found := re.fullmatch(pattern, name))})
