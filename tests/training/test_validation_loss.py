"""Is the validation loss the objective's on fixed batches, and does it change nothing of the training?"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from lossscope.core.batches import Sampling
from lossscope.io.run_folder import Run
from lossscope.io.trusted_code import trust
from lossscope.sources.base import load
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.training import validation
from lossscope.training.loop import resume, train
from lossscope.training.observers import Observers
from lossscope.training.offline_candidates import mine_candidates
from lossscope.training.recipe import Recipe
from tests.each import each

TINY = Recipe(
    data="scenes:train=24,val=9,test=5,size=16", encoder="vsepp:dim=16,words=8,width=4", objective="triplet_sh",
    epochs=2, batch_size=16, lr=0.002, warmup=1,
)  # fmt: skip
OWN_LOSS = """
import torch
def loss(images, captions):
    S = torch.nn.functional.normalize(images, dim=1) @ torch.nn.functional.normalize(captions, dim=1).T
    return torch.nn.functional.cross_entropy(S / 0.1, torch.arange(len(S)))
"""


@pytest.fixture(scope="module", name="run")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(TINY, tmp_path_factory.mktemp("validation") / "run")


def val_losses(run: Run) -> list[float]:
    return list(run.epochs()["val_loss"])


def test_it_is_the_mean_over_batches_of_the_recipes_objective_also_in_the_warm_up(run: Run) -> None:
    """In numpy: both directions of the hardest-negative hinge, summed over the queries of each batch."""
    for epoch, printed in enumerate(val_losses(run)):
        if epoch == 0:
            continue  # there is no checkpoint of the untrained model
        embedded = load(run.epoch(epoch), split="val", cache=False)
        S = embedded.similarity_block(np.arange(9), np.arange(45)).double().numpy()
        sums = []
        for batch in Sampling("pairs", 16, 0, min_batch_size=2).batches(embedded.relations):
            of_batch = S[batch.images][:, batch.captions]
            others = of_batch - 9 * np.eye(len(of_batch))
            hinges = [np.maximum(0, 0.2 - of_batch.diagonal() + others.max(axis)) for axis in (0, 1)]
            sums.append(np.sum(hinges))
        assert len(sums) == 3
        assert printed == pytest.approx(np.mean(sums), rel=1e-5)


def test_the_training_is_the_same_to_the_bit_without_it(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validation, "validation_loss", lambda *_: float("nan"))
    without = train(TINY, tmp_path / "run")
    assert np.isnan(val_losses(without)).all() and np.isfinite(val_losses(run)).all()
    assert without.trajectory.read_bytes() == run.trajectory.read_bytes()
    ours, theirs = (Checkpoint.load(path.last) for path in (run, without))
    assert ours.rng is not None and theirs.rng is not None
    assert torch.equal(ours.rng["cpu"], theirs.rng["cpu"])
    assert all(torch.equal(tensor, theirs.weights[name]) for name, tensor in ours.weights.items())
    columns = [name for name in run.epochs() if name not in ("run", "val_loss")]
    pd.testing.assert_frame_equal(run.epochs()[columns], without.epochs()[columns])


@each(
    "changes",
    [
        {"objective": "meta_spn:hidden=3"},
        {"objective": "ncr"},
        {"objective": "smoothap", "batch_size": 6},
        {"objective": "infonce", "mask": "same-item;above:margin=0.1", "reduction": "mean"},
        {"objective": "ntxent", "mask": "same-text"},
    ],
)
def test_every_kind_of_objective_has_a_validation_loss(changes: dict[str, object], tmp_path: Path) -> None:
    assert np.isfinite(val_losses(train(replace(TINY, epochs=1, warmup=0, **changes), tmp_path / "run"))).all()


def test_an_encoder_that_scores_pairs_has_a_validation_loss(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for split in ("train", "dev", "test"):
        np.save(tmp_path / f"{split}_ims.npy", rng.standard_normal((6, 3, 5)).astype(np.float32))
        (tmp_path / f"{split}_caps.txt").write_text("".join(f"a red box {i % 4}\n" for i in range(30)))
    recipe = replace(
        TINY,
        data=f'precomp:root="{tmp_path}"',
        encoder="scan:dim=8,words=8",
        objective="unified",
        epochs=1,
        min_count=1,
    )
    assert np.isfinite(val_losses(train(recipe, tmp_path / "run"))).all()


def test_a_loss_of_ones_own_gets_the_embeddings_of_the_validation_split(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(OWN_LOSS)
    with trust(any_file=True):
        run = train(replace(TINY, objective=f"{tmp_path}/mine.py:loss", epochs=1), tmp_path / "run")
    assert np.isfinite(val_losses(run)).all()


def test_where_there_is_no_validation_loss_the_run_says_why(run: Run, tmp_path: Path) -> None:
    mine_candidates(load(run.best, cache=False), tmp_path / "ranked", 5)
    cases = {
        "goal states its gradient and has no loss": {"objective": "goal"},
        "aoq compares with offline candidates": {"objective": "aoq", "offline": str(tmp_path / "ranked")},
        r"no whole batch of 64 \(--drop-last\)": {"drop_last": True, "batch_size": 64},
    }
    for number, (reason, changes) in enumerate(cases.items()):
        notices: list[str] = []
        recipe = replace(TINY, epochs=1, warmup=0, **changes)
        without = train(recipe, tmp_path / str(number), observers=Observers(on_notice=notices.append))
        assert np.isnan(val_losses(without)).all()
        assert [text for text in notices if text.startswith("val_loss of metrics.csv stays empty: ")]
        assert any(re.search(reason, text) for text in notices)
        assert without.events()[0]["notices"] == notices


def test_a_run_of_an_earlier_version_resumes_with_its_columns(run: Run, tmp_path: Path) -> None:
    old = train(replace(TINY, epochs=1), tmp_path / "run")
    rows = pd.read_csv(old.metrics, dtype=str, keep_default_na=False).drop(columns="val_loss")
    rows.to_csv(old.metrics, index=False)
    resumed = resume(old.path, epochs=2)
    assert list(pd.read_csv(resumed.metrics)) == list(rows)
    pd.testing.assert_frame_equal(resumed.epochs(), run.epochs().drop(columns="val_loss"))
    curves = resumed.curves()
    assert curves.loc[curves["split"] == "val", "loss"].isna().all()
    curves = run.curves()
    assert curves.loc[curves["split"] == "val", "loss"].tolist() == val_losses(run)
