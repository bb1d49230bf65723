"""Does `lossscope mine` mine a model's training split, and does training use the lists and the numbers of pairs?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.training.offline_candidates import HardCandidates
from tests.command_line import lossscope
from tests.tiny import ENCODER, SCENES

TRAIN = f"train --data {SCENES} --encoder {ENCODER} --epochs 1 --batch-size 32"


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, tiny_run: Path) -> None:
    (tmp_path / "run").symlink_to(tiny_run)


def test_mine_then_train_as_the_help_says() -> None:
    mined = lossscope("mine run --out candidates --top 9 --no-cache")
    assert (mined.exit_code, mined.stdout) == (0, "candidates\n"), mined.stderr
    assert HardCandidates.read(Path("candidates")).captions.shape == (60, 9)
    result = lossscope(f"{TRAIN} --objective aoq --init run/best.pt --offline candidates --out next")
    assert (result.exit_code, result.stdout) == (0, "next\n"), result.stderr
    assert Checkpoint.load("next/best.pt").training["offline"] == "candidates"
    assert lossscope("cocos next --quiet --no-cache").exit_code == 0


def test_the_same_command_again_resumes_and_another_one_is_refused() -> None:
    assert lossscope("mine run --out candidates --no-cache").exit_code == 0
    assert lossscope("mine run --out candidates --no-cache").exit_code == 0
    other = lossscope("mine run --out candidates --top 3 --no-cache")
    assert other.exit_code == 1
    assert "candidates must be new or of this very ranking; it is another one. Choose another --out" in other.stderr


def test_soft_labels_come_from_a_file() -> None:
    np.savez("info.npz", label=np.linspace(0, 1, 300))
    result = lossscope(f"{TRAIN} --objective ncr --info info.npz --warmup 0 --out run2")
    assert result.exit_code == 0, result.stderr
    again = lossscope("train --resume run2 --epochs 2")
    assert again.exit_code == 0, again.stderr
