"""Write bfan.npz and bfan.json: scores and recalls of BFAN by its authors' code. python make_bfan.py BFAN."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import nltk
import numpy as np
import vse_captions
from make_scan import SIZES, write
from scan_checkout import COLUMNS, Checkout

from tests.authors.score_files import write_precaps
from tests.authors.vse_files import Case

EQUAL, PROB = ["--focal_type", "equal"], ["--focal_type", "prob"]
CHOICES: Mapping[str, list[str]] = {
    "equal": EQUAL,
    "prob": PROB,
    "lambda": [*PROB, "--lambda_softmax", "6"],
    "layers": [*EQUAL, "--num_layers", "2"],
    "weight_norm": [*PROB, "--precomp_enc_type", "weight_norm"],
    "no_imgnorm": [*EQUAL, "--no_imgnorm"],
    "no_txtnorm": [*PROB, "--no_txtnorm"],
    "no_norms": [*EQUAL, "--no_imgnorm", "--no_txtnorm"],
    "ten_regions": PROB,
    "without_ends": EQUAL,
}


def main(path: Path) -> None:
    checkout = Checkout(path, "BFAN")
    words = vse_captions.words(nltk.word_tokenize)
    rows = [[words.index(w) if w in words else 3 for w in tokenise(text)] for text in vse_captions.captions()]
    arrays, cases = {}, {}
    for number, (name, choice) in enumerate(CHOICES.items()):
        options = checkout.options([*SIZES, *choice], vocab_size=len(words))
        case = Case(options, (20, 10 if name == "ten_regions" else 36, 6), seed=number)
        ids = rows if name == "without_ends" else [[1, *row, 2] for row in rows]
        arrays[name], cases[name] = answers(checkout, case, ids, words)
    write("bfan", arrays, {"words": words, "ids": rows, "columns": COLUMNS, "cases": cases})


def tokenise(caption: str) -> list[str]:
    """Return the words of a caption."""
    return nltk.word_tokenize(caption.lower())  # type: ignore[no-any-return]


def answers(
    checkout: Checkout, case: Case, ids: Sequence[Sequence[int]], words: list[str]
) -> tuple[Any, dict[str, Any]]:
    """Return the scores of some captions, and what the case is with its recalls."""
    model = checkout.build(case)
    case = replace(case, shapes=checkout.shapes(model))
    with tempfile.TemporaryDirectory() as folder:
        write_precaps(Path(folder) / str(case.options["data_name"]), case, ids)
        S = checkout.scores(model, case, Path(folder), words)
    known = {"metrics": checkout.metrics(S), "fold_metrics": checkout.metrics(S, 5)}
    return S[:, COLUMNS].astype(np.float32), {**asdict(case), **known}


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
