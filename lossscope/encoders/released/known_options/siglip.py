"""The options in SigLIP's files: config.json and image processor of Hugging Face."""

from __future__ import annotations

from ..option_table import OptionTable, Refusal
from .hugging_face import (
    PROCESSOR_DONE,
    PROCESSOR_REFUSED,
    PROCESSOR_WITHOUT_EFFECT,
    refused,
    without_effect,
)

_TEXT, _VISION = "text_config.", "vision_config."
_SIZES = "hidden_size intermediate_size num_hidden_layers num_attention_heads hidden_act layer_norm_eps".split()

OPTIONS = OptionTable(
    done={
        **{f"{tower}{name}": "the sizes of the model" for tower in (_TEXT, _VISION) for name in _SIZES},
        **{f"{_TEXT}{name}": "the sizes of the text tower"
           for name in ("vocab_size", "max_position_embeddings", "projection_size")},
        **{f"{_VISION}{name}": "the sizes of the image tower" for name in ("image_size", "patch_size", "num_channels")},
        "tokenizer_config.pad_token_id": "captions are filled up with it: the padding token of the tokeniser",
        **PROCESSOR_DONE,
    },
    refused={
        **refused(("", _TEXT, _VISION)),
        f"{_VISION}vision_use_head": Refusal((True,), "the image is the attention pooling of its patches here"),
        f"{_VISION}num_patches": Refusal((), "pictures of any shape (SigLIP 2 NaFlex) are not read here"),
        **PROCESSOR_REFUSED,
    },
    without_effect={
        **without_effect(("", _TEXT, _VISION)),
        f"{_TEXT}pad_token_id": "captions are filled up with the padding token of the tokeniser, as by its processor",
        **{f"{tower}eos_token_id": "the caption is its last position" for tower in (_TEXT, _VISION)},
        "eos_token_id": "the caption is its last position",
        **{f"{tower}projection_dim": "not read by SigLIP" for tower in ("", _TEXT, _VISION)},
        **PROCESSOR_WITHOUT_EFFECT,
    },
)  # fmt: skip
