"""Write scan.npz and scan.json: scores and recalls of SCAN by its authors' code. python make_scan.py SCAN."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import nltk
import numpy as np
import vse_captions
from scan_checkout import COLUMNS, Checkout

from tests.authors.vse_files import Case, write_features

SIZES = ["--embed_size", "8", "--word_dim", "5", "--img_dim", "6", "--max_violation", "--data_name", "f30k_precomp"]
I2T = ["--cross_attn", "i2t", "--bi_gru"]
T2I = ["--cross_attn", "t2i", "--bi_gru"]
MEAN = [*T2I, "--agg_func", "Mean"]
CHOICES: Mapping[str, list[str]] = {
    **{f"t2i_{pool}": [*T2I, "--agg_func", pool] for pool in ("LogSumExp", "Mean", "Max", "Sum")},
    **{f"i2t_{pool}": [*I2T, "--agg_func", pool] for pool in ("LogSumExp", "Mean", "Max", "Sum")},
    **{f"t2i_{norm}": [*MEAN, "--raw_feature_norm", norm] for norm in ("softmax", "l2norm", "clipped", "no_norm")},
    "i2t_softmax": [*I2T, "--agg_func", "Mean", "--raw_feature_norm", "softmax", "--lambda_softmax", "4"],
    "lambdas": [*I2T, "--lambda_softmax", "4", "--lambda_lse", "20"],
    "one_way": ["--agg_func", "Mean"],
    "layers": [*MEAN, "--num_layers", "2"],
    "weight_norm": [*MEAN, "--precomp_enc_type", "weight_norm"],
    "no_imgnorm": [*MEAN, "--no_imgnorm"],
    "no_txtnorm": [*MEAN, "--no_txtnorm"],
    "no_norms": [*I2T, "--no_imgnorm", "--no_txtnorm", "--lambda_softmax", "4"],
    "ten_regions": [*T2I, "--agg_func", "Sum"],
    "fifty_regions": [*I2T, "--agg_func", "LogSumExp"],
}
REGIONS = {"ten_regions": 10, "fifty_regions": 50}


def main(path: Path) -> None:
    checkout = Checkout(path, "SCAN")
    words, captions = vse_captions.words(nltk.word_tokenize), vse_captions.captions()
    arrays, cases = {}, {}
    for number, (name, choice) in enumerate(CHOICES.items()):
        options = checkout.options([*SIZES, *choice], vocab_size=len(words))
        case = Case(options, (20, REGIONS.get(name, 36), 6), seed=number)
        S, cases[name] = answers(checkout, case, captions, words)
        arrays[name] = S[:, COLUMNS].astype(np.float32)
    for norm in ("l1norm", "clipped_l1norm"):
        require_crash(checkout, [*SIZES, *MEAN, "--raw_feature_norm", norm], captions, words)
    write("scan", arrays, {"words": words, "captions": captions, "columns": COLUMNS, "cases": cases})


def answers(checkout: Checkout, case: Case, captions: list[str], words: list[str]) -> tuple[Any, dict[str, Any]]:
    """Return S, and what the case is with its recalls."""
    model = checkout.build(case)
    case = replace(case, shapes=checkout.shapes(model))
    with tempfile.TemporaryDirectory() as folder:
        write_features(Path(folder) / str(case.options["data_name"]), case, captions)
        S = checkout.scores(model, case, Path(folder), words)
    known = {"metrics": checkout.metrics(S), "fold_metrics": checkout.metrics(S, 5)}
    return S, {**asdict(case), **known}


def require_crash(checkout: Checkout, arguments: list[str], captions: list[str], words: list[str]) -> None:
    """Raise AssertionError when the authors' code can compute this after all."""
    try:
        answers(checkout, Case(checkout.options(arguments, vocab_size=len(words)), (20, 36, 6)), captions, words)
    except NameError:
        return
    raise AssertionError(f"no longer refused by the authors' code: {arguments}")


def write(name: str, arrays: Mapping[str, Any], content: Mapping[str, Any]) -> None:
    """Write the two files of a family beside this one."""
    here = Path(__file__).parent
    np.savez_compressed(here / f"{name}.npz", **arrays)
    (here / f"{name}.json").write_text(json.dumps(content, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
