"""Which epoch is the best? None of the warm-up, unless the recipe allows it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from lossscope.sources.base import load
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.training.loop import resume, train
from lossscope.training.observers import Observers
from lossscope.training.recipe import Recipe
from lossscope.training.validation import selection_score

HARDEST = Recipe(  # the hardest negative makes this model worse than its warm-up did
    data="scenes:train=60,val=20,test=20,size=16", encoder="vsepp:dim=16,words=8,width=4", objective="triplet-sh",
    epochs=2, warmup=1, batch_size=30, lr=0.05,
)  # fmt: skip


def test_what_the_best_epoch_has_most_of() -> None:
    metrics = {f"{side}_R@{k}": float(10 * k + (side == "t2i")) for side in ("i2t", "t2i") for k in (1, 5, 10)}
    metrics["rsum"] = 300.0
    assert selection_score("rsum", metrics, 3) == 300.0
    assert selection_score("r1_r5", metrics, 3) == 10 + 50 + 11 + 51
    assert selection_score("geometric", metrics, 3) == pytest.approx((11 * 51 * 101) ** (1 / 3))
    assert selection_score("last", metrics, 3) == 3.0


def test_the_best_epoch_is_not_in_the_warmup(tmp_path: Path) -> None:
    run = train(HARDEST, tmp_path / "run")
    rsum = pd.read_csv(run.metrics).set_index("epoch")["rsum"]
    assert rsum[1] > rsum[2:].max()
    assert Checkpoint.load(run.best).epoch == rsum[2:].idxmax()
    assert load(run.path, cache=False).warnings == ()


def test_the_best_epoch_may_be_in_the_warmup_where_the_recipe_says_so(tmp_path: Path) -> None:
    run = train(replace(HARDEST, best_in_warmup=True), tmp_path / "run")
    assert Checkpoint.load(run.best).epoch == 1
    (warning,) = load(run.path, cache=False).warnings
    assert "saved after epoch 1 of 1 of the warm-up: it was trained with triplet:margin=0.2, never with" in warning


def test_a_run_of_warmup_alone_warns_and_keeps_its_best(tmp_path: Path) -> None:
    warnings: list[str] = []
    run = train(replace(HARDEST, epochs=1), tmp_path / "run", observers=Observers(on_warning=warnings.append))
    assert Checkpoint.load(run.best).epoch == 1
    (warning,) = warnings
    assert "the one epoch lies in the warm-up: the model is trained with triplet:margin=0.2, never with" in warning
    resume(run.path, epochs=2)
    assert Checkpoint.load(run.best).epoch == 2


def test_an_objective_without_a_warmup_has_any_best_epoch(tmp_path: Path) -> None:
    warnings: list[str] = []
    run = train(
        replace(HARDEST, objective="triplet", lr=1.0), tmp_path / "run", observers=Observers(on_warning=warnings.append)
    )
    rsum = pd.read_csv(run.metrics).set_index("epoch")["rsum"]
    assert Checkpoint.load(run.best).epoch == rsum[1:].idxmax()
    assert warnings == []
