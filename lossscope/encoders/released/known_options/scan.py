"""The options in files of SCAN."""

from __future__ import annotations

from ..option_table import OptionTable
from .vse_family import PATHS, SIZES, TRAINING

MODEL_SIZES = {name: SIZES[name] for name in ("embed_size", "word_dim", "img_dim")}

CROSS_ATTENTION = {
    **MODEL_SIZES,
    "num_layers": "layers, which the tensors must have",
    "precomp_enc_type": "weight_norm, which the tensors must have",
    "no_imgnorm": "no_imgnorm",
    "no_txtnorm": "no_txtnorm",
    "lambda_softmax": "lambda_softmax",
}
"""Options that BFAN has too."""

PLACES = {
    **PATHS,
    "model_name": "a path: of checkpoints",
    "data_name": "a path: folder of the data, and of its vocabulary",
    "vocab_size": "the evaluation takes the size of the vocabulary, which must be that of the tensors",
}
"""Paths, names and sizes that the evaluation of SCAN and its descendants replaces."""

OPTIONS = OptionTable(
    deciding=("agg_func", "raw_feature_norm", "lambda_softmax", "no_imgnorm", "no_txtnorm"),
    done={
        **CROSS_ATTENTION,
        "cross_attn": "direction",
        "agg_func": "pool",
        "lambda_lse": "lambda_lse",
        "raw_feature_norm": "norm; l1norm and clipped_l1norm are refused, since the original cannot compute them",
        "bi_gru": "bi_gru, which the tensors must have",
    },
    without_effect={**TRAINING, **PLACES},
)
