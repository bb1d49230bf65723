"""MMT: its files hold the whole configuration of a training; its `arch.args` are the model. Gabeur et al. 2020."""

from __future__ import annotations

from ..option_table import OptionTable, Refusal

_MODEL = {
    "type": ("CENet",),
    "args.vid_cont": ("bert",),
    "args.vid_inp": ("both",),
    "args.out_tok": ("mxp",),
    "args.pos_enc": ("tint",),
    "args.txt_wgh": ("emb",),
    "args.vid_wgh": ("none",),
    "args.txt_pro": ("gbn",),
    "args.l2renorm": (False,),
    "args.normalize_experts": (True,),
    "args.vid_bert_params.hidden_act": ("gelu",),
    "args.vid_bert_params.layer_norm_eps": (1e-12,),
}  # name below `arch` -> the value of the published models
_DATA = "data come from --data"
_TRAINING = "training only"

OPTIONS = OptionTable(
    deciding=("arch.args.keep_missing_modalities", "train_sets.args.mix.max_text_words"),
    done={
        "experts.modalities": "the experts, which must be those of the tensors",
        "arch.args.keep_missing_modalities": "keep_missing",
        "arch.args.txt_agg": "a BERT's first state (bertftn, bertfrz...); others are refused",
        "arch.args.same_dim": "joint width, which the tensors must have",
        "arch.args.vid_bert_params.hidden_size": "joint width, which the tensors must have",
        "arch.args.vid_bert_params.num_hidden_layers": "layers, which the tensors must have",
        "arch.args.vid_bert_params.num_attention_heads": "heads",
        "arch.args.vid_bert_params.intermediate_size": "ffn, which the tensors must have",
        "arch.args.vid_bert_params.max_position_embeddings": "positions; zeros are added to fewer ones in the file",
        "arch.args.vid_bert_params.type_vocab_size": "types, which the tensors must have",
        "arch.args.vid_bert_params.hidden_dropout_prob": "dropout",
        "train_sets.args.mix.temporal_encoding_window": "window, of the last training set",
        "train_sets.args.mix.max_text_words": "length, of the last training set",
        "train_sets.args.mix.max_expert_tokens": "frames of an expert, of the last training set",
        "loss.args.margin": "margin of the objective",
    },
    refused={
        **{
            f"arch.{name}": Refusal(values, "Other forms of the model are not built here")
            for name, values in _MODEL.items()
        },
        "arch.args.test_caption_mode": Refusal(("indep",), "Here every caption is a query of its own"),
        "arch.args.use_experts": Refusal(("origfeat",), "Other forms of the model are not built here"),
        "arch.args.use_mask": Refusal(("nomask",), "Other forms of the model are not built here"),
        "loss.type": Refusal(("MaxMarginRankingLoss",), "The objective is named after it"),
    },
    without_effect={
        "arch.args.txt_inp": "whether BERT's embeddings are trained",
        "arch.args.txt_bert_params.*": f"{_TRAINING}: dropout of the text tower",
        "arch.args.vid_bert_params.attention_probs_dropout_prob": f"{_TRAINING}: dropout",
        "arch.args.vid_bert_params.initializer_range": f"{_TRAINING}: initial weights",
        "arch.args.vid_bert_params.vocab_size_or_config_json_file": "an embedding that is not used",
        "arch.args.freeze_weights": "read by no part of the model",
        "arch.args.mimic_ce_dims": "read by no part of the model",
        "arch.args.concat_experts": "read by no part of the model",
        "arch.args.concat_mix_experts": "read by no part of the model",
        "arch.args.agg_dims": "read by no part of the model",
        "experts.*": "widths of experts, which the tensors have",
        "loss.args.fix_norm": f"{_TRAINING}: of the objective",
        "train_sets.*": _DATA,
        "continuous_eval_sets.*": _DATA,
        "final_eval_sets.*": _DATA,
        **dict.fromkeys((
            "cross_seed", "exp_name", "lr_scheduler.*", "metrics", "n_gpu", "optimizer.*", "seed", "trainer.*",
            "visualizer.*", "warmup_iterations",
        ), _TRAINING),
    },
)  # fmt: skip
