"""The options in files of SGRAF."""

from __future__ import annotations

from ..option_table import OptionTable
from .scan import MODEL_SIZES, PLACES
from .vse_family import TRAINING

OPTIONS = OptionTable(
    deciding=("no_imgnorm", "no_txtnorm"),
    done={
        **MODEL_SIZES,
        "num_layers": "layers, which the tensors must have",
        "bi_gru": "bi_gru, which the tensors must have",
        "no_imgnorm": "no_imgnorm",
        "no_txtnorm": "no_txtnorm",
        "module_name": "module, which the tensors must have",
        "sgr_step": "steps, which the tensors must have; SAF has none",
        "sim_dim": "sim_dim, which the tensors must have",
    },
    without_effect={**TRAINING, **PLACES},
)
