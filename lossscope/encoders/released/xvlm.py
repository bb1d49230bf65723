"""X-VLM's files: which tensors are the model's, the sizes that follow from them, and bias tables for another window."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from lossscope.errors import InputError

from ..layers.cross_encoder import HEAD_WIDTH
from ..layers.swin import HEAD_WIDTH as SWIN_HEAD
from ..types import ReleasedFile
from .options import read_count, require_tensor

_CROSS = re.compile(r"text_encoder\.(bert\.)?encoder\.layer\.\d+\.crossattention\.self\.key\.weight")
_DERIVED = ("position_ids", "relative_position_index", "attn_mask")
_HEADS = ("text_encoder.cls.", "bbox_head.")
_TABLE = "relative_position_bias_table"
_PROJ = "vision_encoder.patch_embed.proj.weight"


def is_xvlm(released: ReleasedFile) -> bool:
    """Return whether a file holds an image tower under X-VLM's name and a text encoder with cross attention."""
    tower = released.towers[0]
    has_images = any(name.startswith("vision_encoder.") for name in tower)
    return len(released.towers) == 1 and has_images and any(_CROSS.fullmatch(name) for name in tower)


def select_weights(released: ReleasedFile) -> tuple[dict[str, Tensor], tuple[str, ...]]:
    """Return the model's tensors by name, without the `bert.` of pretrained files, and the names that are left out.

    Left out are heads of pretraining (masked words, boxes), and buffers that follow from the sizes. Raises InputError
    when the image tower is no Swin (X-VLM with CLIP's or DeiT's vision transformer).
    """
    tower = released.towers[0]
    file_names = {name.replace("text_encoder.bert.", "text_encoder.", 1): name for name in tower}
    ignored = {name for name in file_names if name.startswith(_HEADS) or name.rpartition(".")[2] in _DERIVED}
    if not any(_TABLE in name for name in tower):
        raise InputError(
            f"the image tower of {released.path} must be a Swin; lossscope cannot open X-VLM's other towers"
        )
    weights = {name: tower[file_name] for name, file_name in file_names.items() if name not in ignored}
    return weights, tuple(file_names[name] for name in sorted(ignored))


def infer_sizes(weights: Mapping[str, Tensor]) -> dict[str, Any]:
    """Return the options that follow from shapes. Raises InputError when a tensor is missing or of an unknown kind."""
    embed, _, patch, _ = require_tensor(weights, _PROJ, 4).shape
    word = require_tensor(weights, "text_encoder.embeddings.word_embeddings.weight", 2)
    layers = _count_groups(weights, r"text_encoder\.encoder\.layer\.(\d+)\..+")
    fused = _count_groups(weights, r"text_encoder\.encoder\.layer\.(\d+)\.crossattention\..+")
    stages = range(_count_groups(weights, r"vision_encoder\.layers\.(\d+)\..+"))
    depths = [_count_groups(weights, rf"vision_encoder\.layers\.{i}\.blocks\.(\d+)\..+") for i in stages]
    if embed % SWIN_HEAD or word.shape[1] % HEAD_WIDTH or not 0 < fused < layers:
        got = f"{embed}, {word.shape[1]}, {layers} and {fused}"
        raise InputError(
            f"widths of the file must be multiples of {SWIN_HEAD} and {HEAD_WIDTH}, with layers; got {got}"
        )
    return {
        "embed": embed, "patch": patch, "depths": "/".join(map(str, depths)), "window": infer_window(weights),
        "width": word.shape[1], "layers": layers, "fused": fused,
        "positions": require_tensor(weights, "text_encoder.embeddings.position_embeddings.weight", 2).shape[0],
        "dim": require_tensor(weights, "text_proj.weight", 2).shape[0],
    }  # fmt: skip


def infer_window(weights: Mapping[str, Tensor]) -> int:
    """Return the tokens of a window's side, w, from the (2 w − 1)² rows of the first bias table."""
    rows = require_tensor(weights, f"vision_encoder.layers.0.blocks.0.attn.{_TABLE}", 2).shape[0]
    window = (math.isqrt(rows) + 1) // 2
    if (2 * window - 1) ** 2 != rows:
        raise InputError(f"a bias table must have (2 w - 1)² rows for windows of w; got {rows}")
    return window


def infer_image_size(released: ReleasedFile, patch: int, stages: int, window: int) -> int:
    """Return the side of the pictures, from the mask of the first stage's windows, or from the option image_res.

    Without either, the last stage is taken to be a single window. Raises InputError when the two differ.
    """
    mask = released.towers[0].get("vision_encoder.layers.0.blocks.1.attn_mask")
    across = math.isqrt(mask.shape[0]) if mask is not None and mask.ndim == 3 else 1 << (stages - 1)
    side = across * window * patch
    stated = read_count(released.options, "image_res", side)
    if mask is not None and stated != side:
        raise InputError(f"option image_res of the file must be {side}, as its windows are; got {stated}")
    return stated


def resize_bias_tables(weights: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights with bias tables resized (bicubic) to the windows of the model with the `expected` tensors."""
    return {
        name: _resize_table(x, expected[name]) if name in expected and _TABLE in name else x
        for name, x in weights.items()
    }


def _resize_table(table: Tensor, expected: Tensor) -> Tensor:
    """((2 w − 1)², heads) -> a table for windows of another size."""
    old, new = (math.isqrt(len(rows)) for rows in (table, expected))
    if old == new or old * old != len(table):
        return table
    grid = table.float().T.reshape(1, -1, old, old)
    grid = torch.nn.functional.interpolate(grid, size=(new, new), mode="bicubic", align_corners=False)
    return grid.reshape(-1, new * new).T.to(table.dtype).contiguous()


def _count_groups(weights: Mapping[str, Tensor], pattern: str) -> int:
    """Return the number of different values that the group of the pattern has among the names."""
    return len({match[1] for name in weights if (match := re.fullmatch(pattern, name))})
