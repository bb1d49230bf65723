"""Options in the files of Li et al. 2019 and in the VSRN files of Bleeker & de Rijke 2022."""

from __future__ import annotations

from ..option_table import OptionTable
from .vse_family import PATHS, SIZES, TRAINING, VECTORS

_BRANCH = "of the caption branch, which the files do not hold and no score depends on"

OPTIONS = OptionTable(
    deciding=("measure", "use_abs", "no_imgnorm"),
    done={
        **SIZES,
        **VECTORS,
        "data_name": "fc_norm and final_bn, unless the tensors say so; finds the vocabulary",
        "criterion": "objective: triplet, ntxent or smoothap (ranking)",
        "tau": "temperature of ntxent or smoothap",
    },
    without_effect={
        **TRAINING,
        **PATHS,
        "max_len": f"longest caption {_BRANCH}",
        **dict.fromkeys(("dim_vid", "dim_hidden", "dim_word"), f"a size {_BRANCH}"),
        **dict.fromkeys(("rnn_type", "bidirectional", "input_dropout_p", "rnn_dropout_p"), f"a choice {_BRANCH}"),
        **dict.fromkeys(("finetune", "cnn_type", "crop_size"), "of VSE++'s network of pictures: VSRN reads regions"),
        "reset_train": "read by nothing: training switches the mode in every step",
        "use_restval": "training only, of pictures: which are in it",
        "ranking_based": "training only: batches of images with several captions each",
        "n_sp": "training only: captions of an image in a batch",
        "experiment_name": "a name of logs",
    },
)
