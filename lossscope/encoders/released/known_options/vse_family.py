"""Options of VSE++ that its descendants' files hold too, and on which no score depends."""

from __future__ import annotations

from collections.abc import Mapping

TRAINING: Mapping[str, str] = {
    "margin": "training only: of the objective",
    "max_violation": "training only: of the objective",
    "num_epochs": "training only",
    "batch_size": "training only: in evaluation no item depends on the others of its batch",
    "grad_clip": "training only",
    "learning_rate": "training only",
    "lr_update": "training only",
    "workers": "training only: processes that read data",
    "log_step": "training only: logs",
    "val_step": "training only: steps between validations",
    "resume": "training only: a path",
}
"""Training options -> why no score depends on them. `margin` and `max_violation` name the objective."""

PATHS: Mapping[str, str] = {
    "data_path": "a path: data come from --data",
    "vocab_path": "a path: words come from --vocabulary",
    "logger_name": "a path: of logs and checkpoints",
}
"""Paths on the authors' machines."""

SIZES: Mapping[str, str] = {
    "embed_size": "joint width, which the tensors must have",
    "word_dim": "width of a word vector, which the tensors must have",
    "img_dim": "width of the features, which the tensors must have",
    "vocab_size": "number of words, which the tensors must have",
}
"""Sizes of a model, for families that compare them with the tensors (options.require_agreement)."""

VECTORS: Mapping[str, str] = {
    "measure": "score of two vectors: cosine or order",
    "use_abs": "absolute values of both vectors",
    "no_imgnorm": "image vectors are not scaled to unit length",
    "num_layers": "layers of the GRU over words, which the tensors must have",
}
"""How vectors are made and compared, for families that do it as VSE++ (vse_options.read_vector_options)."""
