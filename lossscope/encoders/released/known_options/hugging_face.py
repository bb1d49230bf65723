"""Options that all models of transformers share, in each part of config.json, and those of image processors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..option_table import Refusal

_GENERATION = (
    "bad_words_ids begin_suppress_tokens decoder_start_token_id diversity_penalty do_sample early_stopping "
    "encoder_no_repeat_ngram_size exponential_decay_length_penalty forced_bos_token_id forced_eos_token_id "
    "length_penalty max_length min_length no_repeat_ngram_size num_beam_groups num_beams num_return_sequences "
    "output_scores prefix remove_invalid_values repetition_penalty return_dict_in_generate suppress_tokens temperature "
    "top_k top_p typical_p use_cache"
)
_FORM = (
    "_name_or_path _commit_hash _attn_implementation* _attn_implementation_autoset architectures dtype torch_dtype "
    "finetuning_task id2label* label2id* model_type output_attentions output_hidden_states problem_type return_dict "
    "task_specific_params* tf_legacy_loss tokenizer_class torchscript transformers_version use_bfloat16 "
    "sep_token_id cls_token_id bos_token_id pad_token_id num_labels"
)
_TRAINING = (
    "attention_dropout dropout hidden_dropout_prob gradient_checkpointing initializer_factor initializer_range "
    "logit_scale_init_value"
)
_OTHER_MODELS = "chunk_size_feed_forward cross_attention_hidden_size"
_WHY = {
    "for generated text": _GENERATION,
    "says what the file is, or the form of results": _FORM,
    "of training": _TRAINING,
    "not read by this model": _OTHER_MODELS,
}
_FALSE = Refusal((False, None), "the model is another one with it")
_REFUSED = {
    "add_cross_attention": _FALSE,
    "is_decoder": _FALSE,
    "is_encoder_decoder": _FALSE,
    "tie_encoder_decoder": _FALSE,
    "pruned_heads": Refusal(({}, None), "pruned heads are not built here"),
    "pruned_heads.*": Refusal((), "pruned heads are not built here"),
    "auto_map*": Refusal((None,), "it names code of its own, which is never run"),
    "quantization_config*": Refusal((None,), "quantised weights are not read"),
    "tie_word_embeddings": Refusal((True, False, None), "it must be a flag"),
}
PROCESSOR_DONE = {
    f"preprocessor_config.{name}": "how data sets read pictures: fit, resample, rgb and size; mean and deviation"
    for name in (
        "do_resize size size.* resample do_center_crop crop_size crop_size.* do_rescale rescale_factor do_normalize "
        "image_mean image_std do_convert_rgb"
    ).split()
}
PROCESSOR_WITHOUT_EFFECT = {
    f"preprocessor_config.{name}": "says what the file is, or the form of results"
    for name in (
        "_valid_processor_keys data_format default_to_square device disable_grouping "
        "feature_extractor_type image_processor_type image_seq_length input_data_format pad_size pad_size.* "
        "processor_class return_tensors transformers_version"
    ).split()
}
PROCESSOR_REFUSED = {
    "preprocessor_config.do_pad": Refusal((False, None), "padded pictures are not read"),
    "preprocessor_config.use_square_size": Refusal((False, None), "pictures are not squeezed here"),
}


def without_effect(parts: Iterable[str]) -> dict[str, str]:
    """Return the shared options that leave S as it is, in each part of a configuration; '' for its top."""
    return {f"{part}{name}": why for part in parts for why, names in _WHY.items() for name in names.split()}


def refused(parts: Iterable[str]) -> Mapping[str, Refusal]:
    """Return the shared options that are not done, in each part of a configuration; '' for its top."""
    return {f"{part}{name}": refusal for part in parts for name, refusal in _REFUSED.items()}
