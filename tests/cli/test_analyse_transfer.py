"""`lossscope analyse transfer`: is the matrix that of sweeps of every loss on every model?"""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lossscope.engine.sweep import Sweep
from lossscope.sources.base import load
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from tests.command_line import document, lossscope, message


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def models(tiny_checkpoint: Path) -> tuple[str, str]:
    """Return two models, which say that they were trained with different losses."""
    checkpoint = Checkpoint.load(tiny_checkpoint)
    for name in ("triplet", "ntxent"):
        replace(checkpoint, objective=name).save(f"{name}.pt")
    return "triplet.pt", "ntxent.pt"


def test_each_number_is_that_of_a_sweep_of_a_loss_on_a_model(models: tuple[str, str]) -> None:
    words = "--eps", 0.02, "--batch-size", 32, "--format", "csv", "-o", "matrix.png"
    result = lossscope("analyse", "transfer", *models, *words)
    assert result.exit_code == 0, result.stderr
    rows = pd.read_csv(io.StringIO(result.stdout))
    assert set(zip(rows["objective"], rows["trained_with"], strict=True)) == {
        (a, b) for a in ("triplet:margin=0.2", "ntxent:tau=0.1") for b in ("triplet:margin=0.2", "ntxent:tau=0.1")
    }
    sweep = Sweep(("ntxent:tau=0.1",), ("cocos:eps=0.02,unit=relative",), batch_size=32)
    summary = sweep.run(load("triplet.pt")).summary.set_index(["direction", "statistic"])["mean"]
    found = rows[(rows["objective"] == "ntxent:tau=0.1") & (rows["trained_with"] == "triplet:margin=0.2")]
    found = found.set_index(["direction", "statistic"])["mean"]
    for direction in ("i2t", "t2i"):
        assert found[direction, "C_neg"] == pytest.approx(summary[direction, "C_neg"], rel=1e-9)
    assert Path("matrix.png").stat().st_size > 1000


def test_of_equal_models_everything_is_of_the_loss(models: tuple[str, str]) -> None:
    shares = document(lossscope("analyse", "transfer", *models, "--format", "json"))["shares"]
    assert {round(row["of_loss"], 9) for row in shares if row["statistic"] in ("C_neg", "N_eff")} == {1.0}


def test_sources_that_cannot_be_compared_are_refused(models: tuple[str, str]) -> None:
    np.savez("dump.npz", images=np.eye(4), captions=np.eye(4), caption_image=np.arange(4))
    transfer = "analyse", "transfer"
    assert "two losses or more; got triplet:margin=0.2" in message(lossscope(*transfer, models[0], models[0]))
    assert "dump.npz does not" in message(lossscope(*transfer, models[0], "dump.npz"))
    assert "--eps must be a finite number >= 0; got -1" in message(lossscope(*transfer, *models, "--eps", "-1"))
    assert "-o must end in .pdf, .png or .svg" in message(lossscope(*transfer, *models, "-o", "matrix.txt"))
