"""The options in files of BFAN."""

from __future__ import annotations

from ..option_table import OptionTable
from .scan import CROSS_ATTENTION, PLACES
from .vse_family import TRAINING

OPTIONS = OptionTable(
    deciding=("lambda_softmax", "no_imgnorm", "no_txtnorm"),
    done={**CROSS_ATTENTION, "focal_type": "focal"},
    without_effect={**TRAINING, **PLACES},
)
