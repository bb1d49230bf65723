"""A file of MMT, on videos and captions in MMT's files, gives the similarities and recalls of the authors' code."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from lossscope.retrieval.evaluate import evaluate
from lossscope.sources.base import load
from tests.authors.answers import Answers
from tests.authors.expert_videos import EXPERTS, WORDS, write_mmt_videos
from tests.authors.rule import network_by_rule

pytest.importorskip("transformers")
ANSWERS = Answers("mmt")
MADE = ANSWERS.content


def write_file(folder: Path, keep: bool) -> Path:
    """Write what MMT's trainer saves, and the tokeniser beside it."""
    mix = {"max_text_words": MADE["length"], "max_expert_tokens": MADE["frames"], "temporal_encoding_window": 1}
    config = {
        "experts": {"face_dim": 6, "modalities": sorted(EXPERTS)},
        "arch": {**MADE["arch"], "args": {**MADE["arch"]["args"], "keep_missing_modalities": keep}},
        "train_sets": [{"type": "ExpertDataLoader", "args": {"mix": [mix]}}],
        "loss": {"type": "MaxMarginRankingLoss", "args": {"margin": 0.05, "fix_norm": True}},
    }
    weights = network_by_rule(MADE["shapes"])
    content = {"arch": "CENet", "epoch": 3, "state_dict": weights, "config": config}
    torch.save(content, folder / "trained_model.pth")
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n", "utf-8")
    return folder / "trained_model.pth"


@pytest.mark.parametrize("keep", [True, False])
def test_similarities_and_recalls_are_those_of_the_authors(keep: bool, tmp_path: Path) -> None:
    write_mmt_videos(tmp_path)
    data = (
        f"msrvtt:root={tmp_path / 'feats'},layout=mult-h5,features=../vid_feat_files/mult_h5,annotations=mult-h5,"
        f"frames={MADE['frames']},pick=random"
    )
    embedded = load(write_file(tmp_path, keep), data=data, split="test", cache=False)
    rows, columns = np.arange(len(embedded.image_ids)), np.arange(len(embedded.caption_ids))
    S = embedded.similarities(rows, columns).i2t.numpy()
    assert np.abs(S - ANSWERS.array(f"keep={keep}").T).max() <= 1e-6
    values = evaluate([embedded]).set_index(["direction", "statistic"])["mean"]
    for direction, theirs in MADE["metrics"][f"keep={keep}"].items():
        ours = [values[direction, name] for name in ("R@1", "R@5", "R@10", "medr", "meanr")]
        assert ours == pytest.approx([theirs[name] for name in ("R1", "R5", "R10", "MedR", "MeanR")])
