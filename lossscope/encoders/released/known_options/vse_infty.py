"""The options in files of VSE-infinity, of both branches."""

from __future__ import annotations

from ..option_table import OptionTable
from .scan import MODEL_SIZES, PLACES
from .vse_family import TRAINING

OPTIONS = OptionTable(
    deciding=("no_imgnorm", "no_txtnorm"),
    done={
        **MODEL_SIZES,
        "num_layers": "layers of the GRU, which the tensors must have; BERT ignores it",
        "precomp_enc_type": "image, which the tensors must be of",
        "backbone_source": "backbone, which the tensors must be of; regions ignore it",
        "input_scale_factor": "side of the pictures: 256 times it",
        "no_imgnorm": "no_imgnorm",
        "no_txtnorm": "no_txtnorm",
    },
    without_effect={
        **TRAINING,
        **PLACES,
        "optim": "training only",
        "backbone_path": "a path: the file holds the backbone's tensors",
        "vse_mean_warmup_epochs": "training only: epochs of the sum over all negatives",
        "reset_start_epoch": "training only",
        "backbone_warmup_epochs": "training only",
        "embedding_warmup_epochs": "training only",
        "backbone_lr_factor": "training only",
        "drop": "read by nothing: size augmentation is on in training, off in evaluation",
        "caption_loss": "read by nothing; the evaluation sets it where a file has none",
    },
)
