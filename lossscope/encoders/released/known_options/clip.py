"""The options in CLIP's files: config.json and image processor of Hugging Face, open_clip_config.json."""

from __future__ import annotations

from ..option_table import OptionTable, Refusal
from .hugging_face import (
    PROCESSOR_DONE,
    PROCESSOR_REFUSED,
    PROCESSOR_WITHOUT_EFFECT,
    refused,
    without_effect,
)

_TOWERS = ("text_config.", "text_config_dict.", "vision_config.", "vision_config_dict.")
_SIZES = "hidden_size intermediate_size num_hidden_layers num_attention_heads hidden_act layer_norm_eps".split()
_TEXT_SIZES = "vocab_size max_position_embeddings eos_token_id".split()
_PICTURE_SIZES = "image_size patch_size num_channels".split()
_VISION, _TEXT = "model_cfg.vision_cfg.", "model_cfg.text_cfg."
_OFF, _NONE = Refusal((False, None), "the part is not built here"), Refusal((None,), "the part is not built here")
_OWN_ATTENTION = "qk_norm scaled_cosine_attn scale_heads scale_attn_inner scale_attn scale_fc".split()

_DONE = {
    **{f"{tower}{name}": "the sizes of the model" for tower in _TOWERS for name in _SIZES},
    **{f"{tower}{name}": "the sizes of the text tower" for tower in _TOWERS[:2] for name in _TEXT_SIZES},
    **{f"{tower}{name}": "the sizes of the image tower" for tower in _TOWERS[2:] for name in _PICTURE_SIZES},
    "text_config_dict": "replaces text_config, its defaults included, as in transformers",
    "vision_config_dict": "replaces vision_config, its defaults included, as in transformers",
    "projection_dim": "width of the joint space",
    "model_cfg.embed_dim": "width of the joint space",
    "model_cfg.quick_gelu": "activation of both towers",
    "model_cfg.custom_text": "names of the text tower begin with text.",
    **{f"{_VISION}{name}": "the sizes of the image tower"
       for name in ("image_size", "layers", "width", "head_width", "mlp_ratio", "patch_size")},
    **{f"{_TEXT}{name}": "the sizes of the text tower"
       for name in ("context_length", "vocab_size", "width", "heads", "layers", "mlp_ratio")},
    **{f"{part}norm_kwargs.eps": "eps of the layer norms" for part in (_VISION, _TEXT)},
    **{f"preprocess_cfg.{name}": "how pictures are read"
       for name in ("mean", "std", "interpolation", "resize_mode")},
}  # fmt: skip

_REFUSED = {
    **{f"{part}{name}": _OFF for part in (_VISION, _TEXT) for name in _OWN_ATTENTION},
    **{f"{part}{name}": _NONE for part in (_VISION, _TEXT) for name in ("ls_init_value", "act_kwargs*")},
    **{f"{part}block_type": Refusal((None, "default"), "other blocks are not built here") for part in (_VISION, _TEXT)},
    **{f"{_VISION}{name}": _OFF
       for name in ("attentional_pool", "no_ln_pre", "input_patchnorm", "global_average_pool")},
    f"{_VISION}pool_type": Refusal(("tok",), "the image is the class token here"),
    f"{_VISION}timm_model_name": Refusal((None, ""), "image towers of timm are not built here"),
    f"{_VISION}image_seq_len": _NONE,
    **{f"{_TEXT}{name}": _OFF for name in ("embed_cls", "no_causal_mask", "proj_bias", "variable_text")},
    **{f"{_TEXT}{name}": _OFF for name in ("use_pad_mask", "correct_cls_mask")},
    f"{_TEXT}pool_type": Refusal(("argmax",), "the caption is its token of the greatest id here"),
    f"{_TEXT}proj_type": Refusal(("linear",), "the projection is a linear one here"),
    f"{_TEXT}text_arch": Refusal(("clip",), "the text tower is CLIP's here"),
    f"{_TEXT}hf_model_name": Refusal((None, ""), "text towers of Hugging Face are not built here"),
    **{f"{_TEXT}{name}": Refusal((None, ""), "captions are read by CLIP's tokeniser here")
       for name in ("hf_tokenizer_name", "tokenizer_type", "tokenizer_mode")},
    f"{_TEXT}tokenizer_kwargs": Refusal((None, {}), "captions are read by CLIP's tokeniser here"),
    f"{_TEXT}tokenizer_kwargs.*": Refusal((), "captions are read by CLIP's tokeniser here"),
    "model_cfg.multimodal_cfg*": Refusal((None,), "CoCa's decoder is not built here"),
    "model_cfg.audio*": Refusal((None,), "audio towers are not built here"),
    "model_cfg.nonscalar_logit_scale": Refusal((False,), "the scale is one number here"),
    "preprocess_cfg.mode": Refusal(("RGB",), "pictures are read as RGB"),
}  # fmt: skip

_WITHOUT_EFFECT = {
    **{f"{tower}projection_dim": "the model reads projection_dim beside the towers" for tower in _TOWERS},
    **{f"{tower}eos_token_id": "of captions" for tower in _TOWERS[2:]},
    "tokenizer_config.pad_token_id": "what follows a caption's end is not read",
    "eos_token_id": "the model reads that of text_config",
    **{f"model_cfg.{name}": "where training begins, or the form of results"
       for name in ("init_logit_scale", "init_logit_bias", "output_dict", "cast_dtype")},
    f"{_VISION}patch_dropout": "of training",
    f"{_VISION}pos_embed_type": "the positions are in the file",
    **{f"{part}final_ln_after_pool": "a norm of one token is the same before and after it is taken"
       for part in (_VISION, _TEXT)},
    **{f"{part}{name}": "the form of results"
       for part in (_VISION, _TEXT) for name in ("output_tokens", "norm_kwargs")},
    **{f"{_VISION}{name}": "only with attentional_pool"
       for name in ("attn_pooler_queries", "attn_pooler_heads", "n_queries")},
    **{f"{_VISION}timm_{name}": "only with timm_model_name"
       for name in ("model_pretrained", "pool", "proj", "proj_bias", "drop", "drop_path", "model_kwargs*")},
    **{f"{_TEXT}{name}": "only with another pool_type, or with embed_cls" for name in ("pad_id", "bos_id", "eos_id")},
    **{f"{_TEXT}{name}": "only with hf_model_name"
       for name in ("hf_model_pretrained", "hf_proj_type", "hf_pooler_type", "hf_model_config*", "proj",
                    "pooler_type")},
    **{f"{_TEXT}{name}": "only with tokenizer_type" for name in ("tiktoken_name",)},
    **{f"{_TEXT}{name}": "only with text_arch=modern"
       for name in ("attention_mode", "pos_embed", "rope_temperature", "mlp_type", "norm_type", "norm_eps",
                    "attn_gated", "pre_norm", "norm_placement", "zero_init_residual", "reg_tokens", "value_residual",
                    "attention_bias", "mlp_bias", "gate_bias")},
    "preprocess_cfg.size": "open_clip reads pictures of the image tower's size",
    "preprocess_cfg.fill_color": "only with resize_mode longest, which is refused",
}  # fmt: skip

OPTIONS = OptionTable(
    done={**_DONE, **PROCESSOR_DONE},
    refused={**refused(("", *_TOWERS)), **_REFUSED, **PROCESSOR_REFUSED},
    without_effect={**without_effect(("", *_TOWERS)), **_WITHOUT_EFFECT, **PROCESSOR_WITHOUT_EFFECT},
)
REFUSED_OPTIONS = OptionTable(done={"*": "looked up in OPTIONS"}, refused=OPTIONS.refused)
"""The options that are refused alone, for files whose other options are not looked at yet."""
