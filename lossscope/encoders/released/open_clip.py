"""open_clip's files: the configuration of a model as Hugging Face's, and the towers that are not opened here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from lossscope.errors import InputError
from lossscope.io.json_files import shorten

from .options import read_flag, read_number
from .transformer_config import require_size

_MAX_RATIO = 64
CUSTOM_TEXT = "text."  # before the names of the text tower in files of CustomTextCLIP
_OTHER_TOWERS = {
    r"text_decoder\..*": "a decoder of captions (CoCa)",
    r"visual\.(layer1|attnpool)\..*": "a ResNet as image tower (RN50, RN101, RN50x4, RN50x16, RN50x64)",
    r"visual\.trunk\..*": "an image tower of timm (SigLIP, EVA, ConvNeXt, ViTamin, MobileCLIP)",
    r"visual\.attn_pool.*": "an image tower with attentional pooling",
    r"text\.transformer\.(?!resblocks\.).*": "a text tower of Hugging Face",
    r"text\.cls_emb": "a class embedding in its captions",
    r"(text\.)?text_projection\.(weight|bias)": "a text projection with a bias (SigLIP)",
    r".*\.ls_[12]\.gamma": "layer scales",
    r"audio\..*": "an audio tower (CLAP)",
}
"""Pattern of a tensor's name -> the part of a model that it belongs to and that is not built here."""


def require_plain_towers(tower: Mapping[str, Tensor], path: Path) -> None:
    """Raise InputError, naming the part, unless a file under OpenAI's names holds two plain transformers."""
    for pattern, part in _OTHER_TOWERS.items():
        if any(re.fullmatch(pattern, name) for name in tower):
            raise InputError(f"{path} must hold a CLIP of two plain transformers; it has {part}, not built here")
    if "visual.class_embedding" in tower and not any(name.startswith("visual.ln_pre.") for name in tower):
        raise InputError(
            f"{path} must hold a CLIP of two plain transformers; its image tower has no ln_pre (CLIPA), not built here"
        )


def build_configuration(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return Hugging Face's configuration of the model in open_clip_config.json, with open_clip's defaults.

    Raises InputError for a part that is missing, and for a number out of range.

    Args:
        options: of the file, with `model_cfg`.
    """
    model = _require_part(options, "model_cfg")
    vision, text = _require_part(model, "vision_cfg"), _require_part(model, "text_cfg")
    if not isinstance(vision.get("layers", 12), int):
        raise InputError(f"layers of vision_cfg must be a whole number; got {shorten(vision['layers'])}, a ResNet's")
    activation = {"hidden_act": "quick_gelu" if read_flag(model, "quick_gelu", False) else "gelu"}
    vocabulary = require_size(text, "vocab_size", 1 << 22, 49408)
    width, text_width = require_size(vision, "width", 1 << 14, 768), require_size(text, "width", 1 << 14, 512)
    return {
        "text_config": {
            **activation, **_read_norm(text), "hidden_size": text_width,
            "num_attention_heads": require_size(text, "heads", 512, 8),
            "num_hidden_layers": require_size(text, "layers", 256, 12),
            "intermediate_size": _read_inner(text, text_width),
            "vocab_size": vocabulary, **token_ids(vocabulary),
            "max_position_embeddings": require_size(text, "context_length", 1 << 15, 77),
        },
        "vision_config": {
            **activation, **_read_norm(vision), "hidden_size": width,
            "num_attention_heads": max(width // require_size(vision, "head_width", 1 << 14, 64), 1),
            "num_hidden_layers": require_size(vision, "layers", 256, 12),
            "intermediate_size": _read_inner(vision, width),
            "image_size": _read_side(vision, "image_size", 224), "patch_size": _read_side(vision, "patch_size", 16),
        },
        "projection_dim": require_size(model, "embed_dim", 1 << 14, 512),
    }  # fmt: skip


def token_ids(vocabulary: int) -> dict[str, int]:
    """Return the ids of a text_config with which transformers pools a caption at its greatest id, as the authors do."""
    return {"bos_token_id": max(vocabulary - 2, 0), "eos_token_id": _ARGMAX, "pad_token_id": 0}


_ARGMAX = 2  # the eos_token_id of older configurations, which transformers reads so


def _require_part(options: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = options.get(name)
    if not isinstance(part, Mapping):
        raise InputError(f"open_clip_config.json must hold {name} with its options; got {shorten(part)}")
    return part


def _read_norm(part: Mapping[str, Any]) -> dict[str, float]:
    """Return the eps of the layer norms, where it is stated."""
    stated = part.get("norm_kwargs") or {}
    return {"layer_norm_eps": read_number(stated, "eps", 1e-5)} if isinstance(stated, Mapping) and stated else {}


def _read_inner(part: Mapping[str, Any], width: int) -> int:
    """Return the width inside a block, as a multiple of the tower's."""
    ratio = read_number(part, "mlp_ratio", 4.0)
    if not 0 < ratio <= _MAX_RATIO:
        raise InputError(f"mlp_ratio must be a number > 0, at most {_MAX_RATIO}; got {ratio:g}")
    return int(width * ratio)


def _read_side(part: Mapping[str, Any], name: str, default: int) -> int:
    """Return one side of squares that are stated as a side, or as two equal ones."""
    value = part.get(name, default)
    if isinstance(value, list) and len(value) == 2 and value[0] == value[1]:
        value = value[0]
    return require_size({name: value}, name, 1 << 12, default)
