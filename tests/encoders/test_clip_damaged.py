"""Does each invalid file of CLIP and SigLIP give an error that names its fault, and does none open in part?"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from lossscope.encoders.base import EncoderSpec
from lossscope.encoders.clip import CLIP
from lossscope.encoders.siglip import SigLIP
from lossscope.encoders.types import ReleasedFile
from lossscope.errors import InputError
from tests.each import each

transformers = pytest.importorskip("transformers")

TOWER = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
TEXT = {
    **TOWER,
    "vocab_size": 30,
    "max_position_embeddings": 8,
    "pad_token_id": 1,
    "bos_token_id": 2,
    "eos_token_id": 3,
}
VISION = {**TOWER, "image_size": 16, "patch_size": 8}
KINDS = {"clip": CLIP, "siglip": SigLIP}
CLIP_LIKE = {"text_config": TEXT, "vision_config": VISION, "projection_dim": 12}
SIGLIP_LIKE = {"text_config": {**TEXT, "projection_size": 16}, "vision_config": VISION}
PADDING = {"tokenizer_config": {"pad_token_id": 1}}
OPTIONS: dict[str, dict[str, Any]] = {"clip": CLIP_LIKE, "siglip": {**SIGLIP_LIKE, **PADDING}, "bare": {}}


@cache
def weights(kind: str) -> dict[str, Tensor]:
    torch.manual_seed(0)
    if kind == "siglip":
        model = transformers.SiglipModel(transformers.SiglipConfig(**SIGLIP_LIKE))
    else:
        model = transformers.CLIPModel(transformers.CLIPConfig(**CLIP_LIKE))
    return dict(model.state_dict())


def family(kind: str) -> type[EncoderSpec]:
    return SigLIP if kind == "siglip" else CLIP


def open_with(kind: str, tensors: dict[str, Tensor], options: dict[str, Any] | None = None) -> Any:
    options = OPTIONS[kind] if options is None else options
    stated = {} if options else {"activation": "gelu", "heads": "2", "text_heads": "2"}
    return family(kind).from_released(ReleasedFile(Path("model.safetensors"), (tensors,), options, choices=stated))


NUMBERS = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
WRONG: tuple[Any, ...] = ([], {}, "x", -1, 0, 10**30, 2.5, True, None)


@each("kind", ["clip", "siglip"], "part", ["text_config", "vision_config"])
def test_impossible_sizes_are_named(kind: str, part: str) -> None:
    fields = ("vocab_size", "max_position_embeddings") if part == "text_config" else ("image_size", "patch_size")
    for name in (*NUMBERS, *fields):
        for value in WRONG:
            options = {**OPTIONS[kind], part: {**OPTIONS[kind][part], name: value}}
            with pytest.raises(InputError, match=f"{name} of {part} must be a whole number from 1 to"):
                open_with(kind, weights(kind), options)


@each(
    "kind",
    ["clip", "siglip"],
    "part, change, message",
    [
        ("text_config", {"hidden_act": "x"}, "must be an activation that transformers has; got 'x'"),
        ("text_config", {"hidden_act": None}, "must be an activation that transformers has"),
        ("text_config", {"hidden_act": ["gelu"]}, "must be an activation that transformers has"),
        ("text_config", {"pad_token_id": []}, "pad_token_id of text_config must be the id of a token"),
        ("text_config", {"eos_token_id": -1}, "eos_token_id of text_config must be the id of a token"),
        ("vision_config", {"layer_norm_eps": "x"}, "layer_norm_eps of vision_config must be a number from 0 to 100"),
        ("vision_config", {"attention_dropout": float("nan")}, "must be a number from 0 to 100"),
        ("vision_config", {"num_channels": 4}, "must be a whole number from 1 to 3"),
        ("vision_config", {"patch_size": 32}, "patch_size must be at most image_size; got 32 and 16"),
        (
            "vision_config",
            {"num_attention_heads": 3},
            "multiple of (the number of attention heads|num_attention_heads)",
        ),
        ("vision_config", {"hidden_size": 1 << 14, "intermediate_size": 1 << 16, "num_hidden_layers": 200}, "at most"),
        ("vision_config", {"num_hidden_layers": 2}, "no more and no fewer; missing"),
    ],
)
def test_options_that_do_not_make_a_model_are_named(kind: str, part: str, change: dict[str, Any], message: str) -> None:
    options = {**OPTIONS[kind], part: {**OPTIONS[kind][part], **change}}
    with pytest.raises(InputError, match=message):
        open_with(kind, weights(kind), options)


@each("value", [[], {}, "x", -1, 0, 10**30, None, True])
def test_a_joint_space_of_no_size_is_named(value: Any) -> None:
    with pytest.raises(InputError, match="projection_dim must be a whole number from 1 to 16384"):
        open_with("clip", weights("clip"), {**CLIP_LIKE, "projection_dim": value})


@each("kind", ["clip", "siglip"])
def test_options_that_do_not_define_the_model_are_not_stored(kind: str) -> None:
    odd = {"auto_map": {"AutoModel": "x.Y"}, "_attn_implementation": "x", "output_attentions": True, "dtype": "x"}
    options = {k: {**v, **odd} if isinstance(v, dict) else v for k, v in OPTIONS[kind].items()}
    stored = json.loads(open_with(kind, weights(kind), {**options, **odd}).stored_files["config"])
    assert stored == (CLIP_LIKE if kind == "clip" else SIGLIP_LIKE)


@each("scale", [float("nan"), float("inf"), 1e5, -1e5])
def test_a_scale_out_of_range_is_named(scale: float) -> None:
    tensors = {**weights("clip"), "logit_scale": torch.tensor(scale)}
    with pytest.raises(InputError, match="logit_scale of the file must be from -30 to 30"):
        open_with("clip", tensors)
    with pytest.raises(InputError, match="logit_bias of the file must be from -30 to 30"):
        open_with("siglip", {**weights("siglip"), "logit_bias": torch.tensor([scale])})


def test_shapes_that_fit_no_picture_are_named() -> None:
    name = "vision_model.embeddings.position_embedding.weight"
    with pytest.raises(InputError, match="must be a square number and one; got 4"):
        open_with("bare", {**weights("clip"), name: torch.zeros(4, 16)})
    patch = "vision_model.embeddings.patch_embedding.weight"
    with pytest.raises(InputError, match="image_size of vision_config must be a whole number from 1 to 4096"):
        open_with("bare", {**weights("clip"), patch: torch.zeros(1).expand(16, 3, 1, 1 << 20)})


@each("name, tensor, message", [
    ("transformer.resblocks.0.attn.in_proj_weight", torch.tensor(1.0), "must be of three parts of one size"),
    ("transformer.resblocks.0.attn.in_proj_bias", torch.zeros(2), r"of three parts of one size; got \(2,\)"),
    ("visual.proj", torch.zeros(2), "visual.proj of the file must be a tensor of 2 dimensions"),
    ("text_projection", torch.tensor(1.0), "text_projection of the file must be a tensor of 2 dimensions"),
    ("token_embedding.weight", torch.tensor(1.0), "must be a tensor of 2 dimensions"),
])  # fmt: skip
def test_damaged_tensors_under_openais_names_are_named(name: str, tensor: Tensor, message: str) -> None:
    first = {
        "visual.transformer.resblocks.0.attn.in_proj_weight": torch.zeros(48, 16),
        "logit_scale": torch.tensor(1.0),
    }
    shapes = {"visual.proj": torch.zeros(16, 12), "text_projection": torch.zeros(16, 12)}
    with pytest.raises(InputError, match=message):
        open_with("bare", {**first, **shapes, name: tensor})


@each("kind", ["clip", "siglip"], "text", ["", "[]", "{}", '{"text_config": 1, "vision_config": {}}', "[" * 100_000])
def test_an_invalid_stored_configuration_is_named(kind: str, text: str) -> None:
    with pytest.raises(InputError, match=r"must store its configuration|must hold text_config and vision_config"):
        KINDS[kind]().rebuild((3, 16, 16), 30, {"config": text})
