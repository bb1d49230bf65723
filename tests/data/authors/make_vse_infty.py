"""Write vse_infty.npz and vse_infty.json: scores, recalls and losses of VSE-infinity by its authors' code.

python make_vse_infty.py BERT BIGRU: checkouts of the branches master and bigru.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import nltk
import numpy as np
import torch
import vse_captions
from infty_checkout import Checkout
from make_scan import write
from scan_checkout import COLUMNS
from transformers import BertTokenizer

from tests.authors.score_files import InftyCase, write_grids
from tests.authors.vse_files import write_features

SIZES = ["--embed_size", "8", "--word_dim", "5", "--img_dim", "6", "--max_violation", "--data_name", "f30k"]
GRID = [
    "--embed_size", "8", "--word_dim", "5", "--data_name", "f30k", "--precomp_enc_type", "backbone",
    "--input_scale_factor", "0.375",
]  # fmt: skip
REGIONS: Mapping[str, list[str]] = {
    "bigru": [],
    "bigru_layers": ["--num_layers", "2"],
    "bigru_no_imgnorm": ["--no_imgnorm"],
    "bigru_no_txtnorm": ["--no_txtnorm"],
    "bigru_no_norms": ["--no_imgnorm", "--no_txtnorm", "--backbone_source", "imagenet"],
    "bigru_ten_regions": [],
    "bert": [],
    "bert_no_norms": ["--no_imgnorm", "--no_txtnorm"],
    "bert_fifty_regions": [],
}
COUNTS = {"bigru_ten_regions": 10, "bert_fifty_regions": 50}
SOURCES = ("detector", "imagenet", "imagenet_res50", "imagenet_res152", "imagenet_resnext", "wsl_resnext101")
PICTURES = ((160, 120), (100, 200), (97, 61), (75, 200))
BERT = {"hidden_size": 768, "num_hidden_layers": 1, "num_attention_heads": 12}
BERT_CAPTIONS = (
    "CAFÉ naïve Zürich, a\u0301 \u72d7\u5728\u8dd1 \u2014 \u201cyes\u201d",
    "[MASK] dog [SEP]",
    "soft\u00adhyphen, zero\u200bwidth",
)


def main(master: Path, bigru: Path) -> None:
    words = [*vse_captions.words(nltk.word_tokenize)]
    captions = vse_captions.captions()
    captions[-len(BERT_CAPTIONS) :] = BERT_CAPTIONS
    for text in (caption.lower() for caption in captions):
        assert nltk.word_tokenize(text) == nltk.word_tokenize(text, preserve_line=True), text
    parts = word_parts(captions)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "vocab.txt").write_text("".join(f"{part}\n" for part in parts), encoding="utf-8")
        tokeniser = BertTokenizer(str(Path(folder) / "vocab.txt"))
    checkouts = {"bert": Checkout(master, {**BERT, "vocab_size": len(parts)}), "bigru": Checkout(bigru)}
    vocabulary = checkouts["bigru"].modules["vocab"].Vocabulary()
    for word in (*words, "<mask>"):
        vocabulary.add_word(word)
    tokens = {"bert": tokeniser, "bigru": vocabulary}
    content: dict[str, Any] = {"words": words, "parts": parts, "captions": captions, "columns": COLUMNS, "cases": {}}
    arrays: dict[str, Any] = {}
    for number, (name, choice) in enumerate(REGIONS.items()):
        branch = name.partition("_")[0]
        checkout, size = checkouts[branch], len(parts) if branch == "bert" else len(vocabulary)
        case = InftyCase(
            checkout.options([*SIZES, *choice], vocab_size=size), (20, COUNTS.get(name, 36), 6), seed=number
        )
        S, content["cases"][name] = answers(checkout, case, tokens[branch], region_writer(case, captions))
        arrays[name] = S[:, COLUMNS].astype(np.float32)
        if name in ("bigru", "bert"):
            arrays[f"saved_{name}"] = S.astype(np.float32)
    S = (arrays["saved_bigru"].astype(np.float64) + arrays["saved_bert"]) / 2
    content["ensemble"] = {k: checkouts["bert"].metrics(S, folds) for k, folds in (("metrics", 1), ("fold_metrics", 5))}
    content["grids"] = {}
    for branch, source in [*(("bigru", source) for source in SOURCES), ("bert", "detector")]:
        checkout, size = checkouts[branch], len(parts) if branch == "bert" else len(vocabulary)
        case = InftyCase(checkout.options([*GRID, "--backbone_source", source], vocab_size=size), ())
        S, known = answers(checkout, case, tokens[branch], lambda folder: write_grids(folder, PICTURES, captions[:20]))
        arrays[f"{branch}/{source}"] = S.astype(np.float32)
        content["grids"][f"{branch}/{source}"] = {k: known[k] for k in ("options", "metrics")}
    content["pictures"] = PICTURES
    arrays |= losses(checkouts["bert"])
    write("vse_infty", arrays, content)


def word_parts(captions: list[str]) -> list[str]:
    """Return a WordPiece vocabulary: letters and other characters, short words whole, and halves of some long ones."""
    cut = {token for text in captions for token in nltk.wordpunct_tokenize(text.lower())}
    letters = sorted({letter for token in cut for letter in token})
    whole = sorted(token for token in cut if 1 < len(token) < 6)
    halves = sorted(
        {token[:3] for token in cut if len(token) > 5} | {f"##{token[3:]}" for token in cut if len(token) > 5}
    )
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cafe", "zurich"]
    return list(dict.fromkeys([*special, *letters, *(f"##{letter}" for letter in letters[:40]), *whole, *halves]))


def region_writer(case: InftyCase, captions: list[str]) -> Callable[[Path], None]:
    """Return the function that writes the data of a case into a folder."""
    return lambda folder: write_features(folder / "precomp", case, captions)


def answers(
    checkout: Checkout, case: InftyCase, tokens: Any, write_data: Callable[[Path], None]
) -> tuple[Any, dict[str, Any]]:
    """Return S, and what the case is with its recalls."""
    model = checkout.build(case)
    case = replace(case, shapes=checkout.shapes(model))
    with tempfile.TemporaryDirectory() as folder:
        write_data(Path(folder))
        S = checkout.scores(model, case, Path(folder), tokens)
    folds = {"metrics": 1} if case.options["precomp_enc_type"] == "backbone" else {"metrics": 1, "fold_metrics": 5}
    return S, {**asdict(case), **{name: checkout.metrics(S, count) for name, count in folds.items()}}


def losses(checkout: Checkout) -> dict[str, Any]:
    """Return the loss of a batch and its gradient with respect to S, before and after the first epochs."""
    random = np.random.RandomState(5)
    images, captions = (torch.from_numpy(random.standard_normal((12, 8)).astype(np.float32)) for _ in range(2))
    images, captions = (torch.nn.functional.normalize(x) for x in (images + captions, captions))
    loss = checkout.modules["loss"].ContrastiveLoss(argparse.Namespace(), margin=0.2)
    found = {}
    for name, switch in (("first", loss.max_violation_off), ("later", loss.max_violation_on)):
        switch()
        S = (images @ captions.T).requires_grad_()
        value = loss(S, torch.eye(12))
        value.backward()
        found |= {
            "loss/S": S.detach().numpy(),
            f"loss/{name}": value.detach().numpy(),
            f"loss/{name}_W": S.grad.numpy(),
        }  # type: ignore[union-attr]
    return found


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
