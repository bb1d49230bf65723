"""A file of CE, on its pickled videos and word vectors, gives the similarities and recalls of the authors' code."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from lossscope.datasets.conversion.msrvtt import convert
from lossscope.sources.base import load
from tests.authors.answers import Answers, difference, recalls, similarities
from tests.authors.expert_videos import CE_PICKLES, write_ce_videos
from tests.authors.rule import weights_by_rule

ANSWERS = Answers("ce")
METRICS = ("R1", "R5", "R10", "MedR", "MeanR")
MADE = ANSWERS.content


def write_file(folder: Path, keep: bool) -> Path:
    """Write what CE's trainer saves."""
    arch = {**MADE["config"]["arch"]["args"], "keep_missing_modalities": keep}
    config = {**MADE["config"], "arch": {"type": "CENet", "args": arch}}
    weights = weights_by_rule(MADE["shapes"], scale=MADE["scale"])
    content = {"arch": "CENet", "epoch": 3, "state_dict": weights, "monitor_best": 1.5, "config": config}
    torch.save(content, folder / "trained_model.pth")
    return folder / "trained_model.pth"


@pytest.fixture
def data(tmp_path: Path) -> str:
    """The data set that `lossscope data msrvtt` makes of the authors' pickles."""
    pickles, root = tmp_path / "structured-symlinks", tmp_path / "msrvtt"
    pickles.mkdir()
    write_ce_videos(pickles)
    for expert, file in CE_PICKLES.items():
        convert("expert", pickles / file, root / "features" / expert)
    convert("words", pickles / "aggregated_text_feats" / "w2v_MSRVTT_openAIGPT.pickle", root / "words")
    convert("captions", pickles / "raw-captions.pkl", root / "raw_videodatainfo.json")
    convert("chosen", pickles / "jsfusion_val_caption_idx.pkl", root / "jsfusion_val_caption_idx.json")
    (root / "val_list_jsfusion.txt").write_text((pickles / "val_list_jsfusion.txt").read_text())
    return f"msrvtt:root={root},pick=first,words={root / 'words'},frames=5"


@pytest.mark.parametrize("keep", [True, False])
def test_similarities_and_recalls_are_those_of_the_authors(keep: bool, tmp_path: Path, data: str) -> None:
    embedded = load(write_file(tmp_path, keep), data=data, split="test", cache=False)
    assert difference(similarities(embedded), ANSWERS.array(f"keep={keep}").T) <= 1e-6
    for direction, theirs in MADE["metrics"][f"keep={keep}"].items():
        assert recalls([embedded])[direction] == pytest.approx([theirs[name] for name in METRICS])
