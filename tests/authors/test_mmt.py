"""A file of MMT, on videos and captions in MMT's files, gives the similarities and recalls of the authors' code."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from lossscope.sources.base import load
from tests.authors.answers import Answers, difference, recalls, similarities
from tests.authors.expert_videos import EXPERTS, WORDS, write_mmt_videos
from tests.authors.rule import network_by_rule

pytest.importorskip("transformers")
ANSWERS = Answers("mmt")
METRICS = ("R1", "R5", "R10", "MedR", "MeanR")
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
    assert difference(similarities(embedded), ANSWERS.array(f"keep={keep}").T) <= 1e-6
    for direction, theirs in MADE["metrics"][f"keep={keep}"].items():
        assert recalls([embedded])[direction] == pytest.approx([theirs[name] for name in METRICS])
