"""Is every option of CLIP's and SigLIP's published configurations in a table, and any other refused?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lossscope.encoders.released.known_options.clip import OPTIONS as CLIP
from lossscope.encoders.released.known_options.siglip import OPTIONS as SIGLIP
from lossscope.encoders.released.open_clip_models import Heads, Sizes, describe_model, find_heads
from lossscope.encoders.released.option_table import OptionTable
from lossscope.errors import InputError
from tests.each import each

OLDER_TOWER: dict[str, Any] = {
    "_name_or_path": "", "add_cross_attention": False, "architectures": None, "attention_dropout": 0.0,
    "bad_words_ids": None, "begin_suppress_tokens": None, "bos_token_id": 0, "chunk_size_feed_forward": 0,
    "cross_attention_hidden_size": None, "decoder_start_token_id": None, "diversity_penalty": 0.0, "do_sample": False,
    "dropout": 0.0, "early_stopping": False, "encoder_no_repeat_ngram_size": 0, "eos_token_id": 2,
    "exponential_decay_length_penalty": None, "finetuning_task": None, "forced_bos_token_id": None,
    "forced_eos_token_id": None, "hidden_act": "quick_gelu", "hidden_size": 512, "id2label": {"0": "LABEL_0"},
    "initializer_factor": 1.0, "initializer_range": 0.02, "intermediate_size": 2048, "is_decoder": False,
    "is_encoder_decoder": False, "label2id": {"LABEL_0": 0}, "layer_norm_eps": 1e-05, "length_penalty": 1.0,
    "max_length": 20, "min_length": 0, "model_type": "clip_text_model", "no_repeat_ngram_size": 0,
    "num_attention_heads": 8, "num_beam_groups": 1, "num_beams": 1, "num_hidden_layers": 12,
    "num_return_sequences": 1, "output_attentions": False, "output_hidden_states": False, "output_scores": False,
    "pad_token_id": 1, "prefix": None, "problem_type": None, "projection_dim": 512, "pruned_heads": {},
    "remove_invalid_values": False, "repetition_penalty": 1.0, "return_dict": True, "return_dict_in_generate": False,
    "sep_token_id": None, "suppress_tokens": None, "task_specific_params": None, "temperature": 1.0,
    "tf_legacy_loss": False, "tie_encoder_decoder": False, "tie_word_embeddings": True, "tokenizer_class": None,
    "top_k": 50, "top_p": 1.0, "torch_dtype": None, "torchscript": False, "transformers_version": "4.16.0.dev0",
    "typical_p": 1.0, "use_bfloat16": False,
}  # fmt: skip
OLDER: dict[str, Any] = {
    "_commit_hash": None, "_name_or_path": "clip-vit-base-patch32/", "architectures": ["CLIPModel"],
    "initializer_factor": 1.0, "logit_scale_init_value": 2.6592, "model_type": "clip", "projection_dim": 512,
    "text_config": {**OLDER_TOWER, "vocab_size": 49408, "max_position_embeddings": 77},
    "text_config_dict": None, "torch_dtype": "float32", "transformers_version": None,
    "vision_config": {**OLDER_TOWER, "image_size": 224, "patch_size": 32, "num_channels": 3},
    "vision_config_dict": {"hidden_size": 768, "patch_size": 32},
}  # fmt: skip
PROCESSOR = {
    "crop_size": 224, "do_center_crop": True, "do_normalize": True, "do_resize": True, "do_convert_rgb": True,
    "feature_extractor_type": "CLIPFeatureExtractor", "image_mean": [0.5] * 3, "image_std": [0.5] * 3, "resample": 3,
    "size": {"shortest_edge": 224}, "do_rescale": True, "rescale_factor": 1 / 255, "processor_class": "CLIPProcessor",
}  # fmt: skip
OPEN_CLIP: dict[str, Any] = {
    "model_cfg": {
        "embed_dim": 512, "quick_gelu": True, "init_logit_bias": -10, "custom_text": True,
        "vision_cfg": {
            "image_size": 224, "layers": 12, "width": 768, "head_width": 64, "patch_size": 32, "mlp_ratio": 4.0,
            "patch_dropout": 0.5, "pool_type": "tok", "attentional_pool": False, "ls_init_value": None,
            "timm_model_name": None, "timm_pool": "avg", "norm_kwargs": None, "act_kwargs": None,
        },
        "text_cfg": {
            "context_length": 77, "vocab_size": 49408, "width": 512, "heads": 8, "layers": 12, "pool_type": "argmax",
            "hf_model_name": None, "hf_pooler_type": "mean_pooler", "proj_type": "linear", "pad_id": 0, "eos_id": 2,
        },
    },
    "preprocess_cfg": {
        "mean": [0.5] * 3, "std": [0.5] * 3, "interpolation": "bicubic", "resize_mode": "shortest", "size": 224,
        "mode": "RGB", "fill_color": 0,
    },
}  # fmt: skip
SIGLIP_CONFIG: dict[str, Any] = {
    "architectures": ["SiglipModel"], "initializer_factor": 1.0, "model_type": "siglip", "torch_dtype": "float32",
    "text_config": {**OLDER_TOWER, "vocab_size": 32000, "max_position_embeddings": 64, "projection_size": 768},
    "vision_config": {**OLDER_TOWER, "image_size": 224, "patch_size": 16, "num_channels": 3, "vision_use_head": True},
    "transformers_version": "4.37.0.dev0", "dtype": "float32",
}  # fmt: skip
KNOWN: list[tuple[str, OptionTable, dict[str, Any]]] = [
    ("clip", CLIP, {**OLDER, "preprocessor_config": PROCESSOR}),
    ("open_clip", CLIP, OPEN_CLIP),
    ("siglip", SIGLIP, {**SIGLIP_CONFIG, "preprocessor_config": PROCESSOR}),
]


@each("name, table, options", KNOWN)
def test_published_options_are_known_and_any_other_one_is_refused(
    name: str, table: OptionTable, options: dict[str, Any]
) -> None:
    table.require_known(options, (), Path(name))
    for parts in ([], ["text_config"], ["vision_config"], ["model_cfg"], ["model_cfg", "text_cfg"], ["preprocess_cfg"]):
        inner: Any = {"something_new": 1}
        for part in reversed(parts):
            inner = {part: inner}
        with pytest.raises(InputError, match="something_new=1, which the authors' files do not have"):
            table.require_known(inner, (), Path(name))


def test_options_that_transformers_saves_today_are_known() -> None:
    transformers = pytest.importorskip("transformers")
    for table, config in ((CLIP, transformers.CLIPConfig()), (SIGLIP, transformers.SiglipConfig())):
        table.require_known(config.to_dict(), (), Path("config.json"))


@each("table, part, option", [
    (CLIP, "text_config", {"pruned_heads": {"0": [1]}}),
    (CLIP, "vision_config", {"is_decoder": True}),
    (CLIP, "", {"auto_map": {"AutoModel": "x.Y"}}),
    (CLIP, "", {"quantization_config": {"bits": 8}}),
    (SIGLIP, "vision_config", {"vision_use_head": False}),
    (SIGLIP, "vision_config", {"num_patches": 256}),
])  # fmt: skip
def test_options_of_other_models_are_refused_by_name(table: OptionTable, part: str, option: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(option))):
        table.require_known({part: option} if part else option, (), Path("config.json"))


B32, H14 = Sizes(512, 768, 12, 32, 3072, 512, 12), Sizes(1024, 1280, 32, 14, 5120, 1024, 24)


def test_names_of_published_models_say_heads_and_activation() -> None:
    assert describe_model("ViT-B-32", B32) == (Heads(12, 8), "gelu")
    assert describe_model("ViT-B-32-quickgelu", B32) == (Heads(12, 8), "quick_gelu")
    assert describe_model("ViT-H-14-378-quickgelu", H14) == (Heads(16, 16), "quick_gelu")
    assert describe_model("ViT-B-16-plus-240", Sizes(640, 896, 12, 16, 3584, 640, 12)) == (Heads(14, 10), "gelu")
    assert find_heads(H14) == Heads(16, 16)  # 80 wide
    assert find_heads(Sizes(1024, 1408, 40, 14, 6144, 1024, 24)) == Heads(16, 16)  # 88 wide
    assert find_heads(Sizes(1280, 1664, 48, 14, 8192, 1280, 32)) == Heads(16, 20)  # 104 wide
    assert find_heads(Sizes(1, 2, 3, 4, 5, 6, 7)) is None
