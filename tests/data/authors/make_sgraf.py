"""Write sgraf.npz and sgraf.json: scores and recalls of SGRAF by its authors' code.

python make_sgraf.py SGRAF_MAIN SGRAF_PYTHON36: two branches of one repository.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import nltk
import numpy as np
import vse_captions
from make_scan import answers, write
from scan_checkout import COLUMNS, Checkout

from tests.authors.score_files import SgrafCase

SIZES = ["--embed_size", "8", "--word_dim", "5", "--img_dim", "6", "--sim_dim", "16", "--data_name", "f30k_precomp"]
SGR, SAF = ["--module_name", "SGR"], ["--module_name", "SAF"]
CHOICES: Mapping[str, list[str]] = {
    "sgr": SGR,
    "saf": SAF,
    "sgr_main": SGR,
    "saf_main": SAF,
    "one_step": [*SGR, "--sgr_step", "1"],
    "one_way": [*SAF, "--bi_gru"],  # the flag switches it off there
    "layers": [*SGR, "--num_layers", "2"],
    "no_imgnorm": [*SAF, "--no_imgnorm"],
    "no_txtnorm": [*SGR, "--no_txtnorm"],
    "no_norms": [*SAF, "--no_imgnorm", "--no_txtnorm"],
}


def main(master: Path, port: Path) -> None:
    checkouts = {"main": Checkout(master, "SGRAF"), "port": Checkout(port, "SGRAF")}
    words, captions = vse_captions.words(nltk.word_tokenize), vse_captions.captions()
    arrays, cases, whole = {}, {}, {}
    for number, (name, choice) in enumerate(CHOICES.items()):
        checkout = checkouts["main" if name.endswith("_main") else "port"]
        case = SgrafCase(checkout.options([*SIZES, *choice], vocab_size=len(words)), (20, 36, 6), seed=number)
        if name == "saf":
            case = SgrafCase(case.options, case.features, seed=0)  # the data of sgr, with which it is an ensemble
        whole[name], cases[name] = answers(checkout, case, captions, words)
        arrays[name] = whole[name][:, COLUMNS].astype(np.float32)
    S = (whole["sgr"] + whole["saf"]) / 2
    ensemble = {"metrics": checkouts["port"].metrics(S), "fold_metrics": checkouts["port"].metrics(S, 5)}
    content = {"words": words, "captions": captions, "columns": COLUMNS, "cases": cases, "ensemble": ensemble}
    write("sgraf", arrays, content)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
