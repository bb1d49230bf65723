"""Options in the files of Faghri et al. (all branches) and in the VSE++ files of Bleeker & de Rijke 2022."""

from __future__ import annotations

from ..option_table import OptionTable
from .vse_family import PATHS, SIZES, TRAINING, VECTORS

OPTIONS = OptionTable(
    deciding=("measure", "use_abs", "no_imgnorm"),
    done={
        **SIZES,
        **VECTORS,
        "data_name": "pictures or features, which must be what the tensors read; finds the vocabulary",
        "cnn_type": "network of pictures, which must be the one in the tensors",
        "finetune": "whether training continues with the network",
        "reset_train": "mode of a frozen network in further training (bn_mode)",
        "criterion": "objective: triplet, ntxent or smoothap (ranking)",
        "tau": "temperature of ntxent or smoothap",
    },
    without_effect={
        **TRAINING,
        **PATHS,
        "crop_size": "training only: evaluation reads the middle 224 x 224, whatever it is",
        "use_restval": "training only: which pictures are in it",
        "ranking_based": "training only: batches of pictures with several captions each",
        "n_sp": "training only: captions of a picture in a batch",
        "experiment_name": "a name of logs",
    },
)
