"""Does the doctor read lines of out.log as two versions of open_clip write them?"""

from __future__ import annotations

from pathlib import Path

import pytest

from lossscope.doctor.logs.open_clip_log import read_open_clip_log
from lossscope.doctor.logs.read_log import read_log
from lossscope.errors import InputError

HEAD = "2024-01-02,03:04:05 | INFO | "
NEW = """Params:
  batch_size: 256
Start epoch 0
Train Epoch: 0 [    256/1024 (25%)] Data (t): 3.1 Batch (t): 3.5, 73.1/s, 73.1/s/gpu LR: 0.000001 Logit Scale: 14.286 \
Contrastive_loss: 5.6 (5.6) Loss: 5.5449 (5.5449)
Train Epoch: 0 [   1024/1024 (100%)] Data (t): 0.1 Batch (t): 0.5, 512.0/s, 512.0/s/gpu LR: 5e-05 Logit Scale: 14.290 \
Contrastive_loss: 5.5 (5.5) Loss: 5.4 (5.5)
Eval Epoch: 1 [64 / 500]\tClip Loss: 4.100000\t
Eval Epoch: 1 image_to_text_mean_rank: 80.1\timage_to_text_R@1: 0.0200\ttext_to_image_R@1: 0.0400\t\
clip_val_loss: 5.3000\tepoch: 1.0000\tnum_samples: 500.0000
Train Epoch: 1 [    256/1024 (25%)] Data (t): 0.1 Batch (t): 0.5, 512.0/s LR: 0.000100 Logit Scale: nan Loss: nan (nan)
"""
OLD = "Train Epoch: 0 [512/2834 (18%)]\tLoss: 6.2 (6.3)\tBatch (t): 0.5\tLR: 0.000005\tlogit_scale 14.286\n"


def write(folder: Path, text: str) -> Path:
    """Write a file out.log with a logger's prefix on each line."""
    path = folder / "out.log"
    path.write_text("".join(HEAD + line + "\n" for line in text.splitlines()), encoding="utf-8")
    return path


def test_lines_of_training_and_of_evaluations(tmp_path: Path) -> None:
    write(tmp_path, NEW)
    log = read_log(tmp_path)
    assert log.steps["step"].tolist() == [1, 4, 5] and log.batch_size == 256
    assert log.steps["loss"].tolist()[:2] == [5.5449, 5.4] and log.steps["loss"].isna().tolist()[2]
    assert log.steps["lr"].tolist() == [1e-6, 5e-5, 1e-4] and log.steps["logit_scale"].tolist()[:2] == [14.286, 14.29]
    assert log.evaluations["step"].tolist() == [4] and log.evaluations["val_loss"].tolist() == [5.3]
    row = log.evaluations.iloc[0]
    assert (row["val_recall_first"], row["val_recall_second"]) == (0.02, 0.04)
    assert row["val_recall"] == pytest.approx(0.03)


def test_older_lines(tmp_path: Path) -> None:
    log = read_log(write(tmp_path, OLD))
    assert log.steps.to_dict("list") == {"step": [1], "loss": [6.2], "lr": [5e-06]}


def test_another_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"must have lines `Train Epoch: \.\.\.`"):
        read_open_clip_log(write(tmp_path, "Start epoch 0\n"))


def test_the_users_columns_win(tmp_path: Path) -> None:
    log = read_log(write(tmp_path, NEW), {"loss": "Contrastive_loss"})
    assert log.steps["loss"].tolist() == [5.6, 5.5]
