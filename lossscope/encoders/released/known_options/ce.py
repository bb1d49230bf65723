"""CE: its files hold the whole configuration of a training; its `arch.args` are the model. Liu et al. 2019."""

from __future__ import annotations

from typing import Any

from ..option_table import OptionTable, Refusal

_MODEL: dict[str, tuple[Any, ...]] = {
    "use_ce": ("pairwise",),
    "use_mish": (1, True),
    "use_bn_reason": (1, True),
    "include_self": (1, True),
    "num_g_layers": (3,),
    "num_h_layers": (0,),
    "l2renorm": (False, 0),
    "concat_experts": (False, 0),
    "concat_mix_experts": (False, 0),
    "mimic_ce_dims": (False, 0),
    "randomise_feats": ("",),
    "kron_dets": (False,),
    "coord_dets": (False,),
    "geometric_mlp": (False,),
    "rand_proj": (False,),
    "spatial_feats": (False,),
}  # name below `arch.args` -> the values of the published models
_DATA = "data come from --data"
_TRAINING = "training only"

OPTIONS = OptionTable(
    deciding=("arch.args.keep_missing_modalities", "data_loader.args.max_tokens.text"),
    done={
        "experts.modalities": "the experts, sorted, which are numbered in the tensors",
        "experts.ce_shared_dim": "joint width, which the tensors must have",
        "arch.args.keep_missing_modalities": "keep_missing",
        "arch.args.vlad_clusters.*": "clusters of an expert or of the words, which the tensors must have",
        "arch.args.ghost_clusters.text": "ghost clusters of the words, which the tensors must have",
        "data_loader.args.max_tokens.*": "rows of an expert, and length of captions",
        "loss.args.margin": "margin of the objective",
    },
    refused={
        "arch.type": Refusal(("CENet",), "Other models are not built here"),
        **{
            f"arch.args.{name}": Refusal(values, "Other forms of the model are not built here")
            for name, values in _MODEL.items()
        },
        "arch.args.test_caption_mode": Refusal(("indep",), "Here every caption is a query of its own"),
        "experts.text_agg": Refusal(("vlad",), "Captions without NetVLAD are not built here"),
        "experts.drop_feats": Refusal(("",), "Experts that are dropped in evaluation are not built here"),
        "data_loader.args.feat_aggregation.*binarise": Refusal((False,), "Features are not replaced by ones here"),
        "data_loader.args.feat_aggregation.*trn_seg": Refusal((), "Temporal relation networks are not built here"),
        "data_loader.args.trn_cat": Refusal((False, 0), "Temporal relation networks are not built here"),
        "data_loader.args.fuse_captions": Refusal((False,), "Here every caption is a query of its own"),
        "data_loader.args.use_zeros_for_missing": Refusal((False,), "Here a missing expert is left out"),
        "loss.type": Refusal(("MaxMarginRankingLoss",), "The objective is named after it"),
        "task": Refusal(("retrieval",), "Classification is not built here"),
    },
    without_effect={
        "arch.args.freeze_weights": f"{_TRAINING}: which parts are trained",
        "arch.args.ghost_clusters.*": "of experts, whose pooling has none",
        "arch.args.verbose": "logs",
        "experts.text_feat": "which word vectors: those of the data set are read (msrvtt:words=STEM)",
        "experts.text_dim": "width of a word vector, which the tensors have; later configurations name a file for it",
        "experts.face_dim": "width of an expert, which the tensors have",
        "data_loader.*": _DATA,
        "eval_settings*": _DATA,
        "caption_masks": _DATA,
        "challenge_mode": _DATA,
        "training_file": _DATA,
        "text_embedding_model_configs": _DATA,
        "loss.args.fix_norm": f"{_TRAINING}: of the objective",
        **dict.fromkeys((
            "cache_targets", "cross_seed", "disable_nan_checks", "distil_loss", "distil_params*", "eval_config",
            "eval_mode", "force_cpu_val", "hconfig_path", "inherit_from", "log_name", "lr_scheduler.*",
            "manual_linear_init", "metrics", "n_gpu", "optimizer.*", "seed", "tester.*", "trainer.*",
            "visualizer.*",
        ), _TRAINING),
    },
)  # fmt: skip
