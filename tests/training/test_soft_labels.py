"""Does training label wrong pairs as wrong, give them small margins, and resume to the same bits?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from lossscope.core.similarity import pair_mask
from lossscope.errors import InputError, Stopped
from lossscope.io.run_folder import Run
from lossscope.registry import build
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.training.components import resolve
from lossscope.training.loop import resume, train
from lossscope.training.observers import Observers
from lossscope.training.recipe import Recipe
from lossscope.training.soft_labels import clean_probability, labels_of, pair_losses, predict
from lossscope.training.state import new_state
from lossscope.training.task import prepare_task
from lossscope.training.trained_batch import TrainedBatch
from tests.each import each

WORDS = ("red", "blue", "green", "old", "new", "big", "tiny", "warm", "cold", "odd", "soft", "loud")
RECIPE = Recipe(
    encoder="vsepp:image=linear,dim=16,words=12", objective="ncr", epochs=4, warmup=3, batch_size=40, lr=0.005,
    min_count=1,
)  # fmt: skip


@pytest.fixture(scope="module", name="planted")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Any]:
    """Write items that are sums of four words' vectors; 30 % of the training captions change places. Return both."""
    root, rng = tmp_path_factory.mktemp("planted"), np.random.default_rng(0)
    vectors = rng.standard_normal((12, 24))
    is_wrong = np.zeros(400, dtype=bool)
    for split, number in (("train", 80), ("dev", 10)):
        drawn = np.array([rng.permutation(12)[:4] for _ in range(number)])
        items = vectors[drawn].sum(1) + 0.3 * rng.standard_normal((number, 24))
        np.save(root / f"{split}_ims.npy", items.astype(np.float32))
        captions = [" ".join(WORDS[word] for word in rng.permutation(row)) for row in drawn for _ in range(5)]
        if split == "train":
            wrong, right = rng.permutation(400)[:120], list(captions)
            for to, source in zip(wrong, np.roll(wrong, 1), strict=True):
                captions[to] = right[source]
            is_wrong[wrong] = True
        (root / f"{split}_caps.txt").write_text("\n".join(captions) + "\n")
    return f'precomp:root="{root}"', is_wrong


@pytest.fixture(scope="module", name="run")
def trained(planted: tuple[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(replace(RECIPE, data=planted[0]), tmp_path_factory.mktemp("labels") / "run")


def labels(run: Run) -> Any:
    checkpoint = Checkpoint.load(run.last)
    assert checkpoint.optimiser is not None
    return checkpoint.optimiser["labels"].numpy()


@each("spec", ["ncr", "unified:margins=ncr"])
def test_wrong_pairs_get_lower_margins_than_right_ones(spec: str, planted: tuple[str, Any], tmp_path: Path) -> None:
    data, is_wrong = planted
    notices: list[str] = []
    recipe = replace(RECIPE, data=data, objective=spec)
    y = labels(train(recipe, tmp_path / "run", observers=Observers(on_notice=notices.append)))
    margins = 0.2 * (10.0**y - 1) / 9
    assert margins[is_wrong].mean() < margins[~is_wrong].mean() / 2
    assert (y[is_wrong][:, None] < y[~is_wrong][None]).mean() > 0.85
    assert any("the labels of ncr come from one network" in text for text in notices) == (spec == "ncr")


def test_the_objective_gets_the_labels_after_the_warm_up_alone(planted: tuple[str, Any], tmp_path: Path) -> None:
    seen: list[TrainedBatch] = []
    run = train(replace(RECIPE, data=planted[0]), tmp_path / "run", observers=Observers(on_batch=seen.append))
    assert len(seen) == 40
    y = labels(run)
    for batch in seen:
        of_batch = batch.mask.info.get("label")
        assert (of_batch is None) == (batch.epoch < 3)
        if of_batch is not None:
            np.testing.assert_array_equal(of_batch.numpy(), y[batch.batch.captions])
    (event,) = [event for event in run.events() if event["event"] == "labels"]
    assert (event["epoch"], event["mean"]) == (4, pytest.approx(y.mean()))


def test_a_run_that_stops_within_an_epoch_keeps_its_labels(run: Run, planted: tuple[str, Any], tmp_path: Path) -> None:
    def stop(batch: TrainedBatch) -> str | None:
        return "enough" if (batch.epoch, batch.step) == (3, 4) else None

    with pytest.raises(Stopped):
        train(replace(RECIPE, data=planted[0]), tmp_path / "run", observers=Observers(on_batch=stop))
    resumed = resume(tmp_path / "run")
    assert resumed.trajectory.read_bytes() == run.trajectory.read_bytes()
    assert np.array_equal(labels(resumed), labels(run))
    ours, theirs = (Checkpoint.load(path.last).weights for path in (run, resumed))
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in ours.items())


def test_the_labels_of_a_run_are_numbers_for_info(run: Run, planted: tuple[str, Any], tmp_path: Path) -> None:
    """The labels of the last epoch, given from its start, are those that it trained with."""
    assert np.array_equal(np.load(run.labels)["label"], labels(run))
    recipe = replace(RECIPE, data=planted[0], info=str(run.labels))
    again = train(recipe, tmp_path / "run")
    last = [pd.read_csv(path.trajectory).query("epoch == 4")["loss"].tolist() for path in (run, again)]
    assert last[0] == last[1]
    assert not again.labels.exists()


def test_the_labels_change_no_random_number_and_no_parameter(planted: tuple[str, Any], tmp_path: Path) -> None:
    from lossscope.training.soft_labels import estimate_labels

    task = prepare_task(resolve(replace(RECIPE, data=planted[0])), tmp_path, "cpu")
    state = new_state(task)
    state.model.train()
    before = torch.get_rng_state(), {name: x.clone() for name, x in state.model.state_dict().items()}
    first, second = estimate_labels(task, state), estimate_labels(task, state)
    assert torch.equal(first, second) and first.shape == (400,)
    assert torch.equal(torch.get_rng_state(), before[0]) and state.model.training
    assert all(torch.equal(x, before[1][name]) for name, x in state.model.state_dict().items())


def test_data_without_a_caption_of_each_pair_are_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(
        "".join(f'{{"query": "q {k}", "positive": "p {k}", "negative": "n {k}"}}\n' for k in range(200))
    )
    recipe = Recipe(data=f"texts:file={tmp_path}/rows.jsonl", encoder="biencoder", objective="ncr", min_count=1)
    with pytest.raises(InputError, match=r"labels pairs: every document must belong to one query.*--negatives none"):
        prepare_task(resolve(recipe), tmp_path, "cpu")


def test_losses_and_predictions_are_those_of_the_released_code() -> None:
    """In numpy, term by term: the triplet loss of both directions, its mean over B, and the largest tenth."""
    rng = np.random.default_rng(1)
    S = rng.uniform(-0.2, 0.6, (25, 25)) + 0.3 * np.eye(25)
    expected = np.zeros(25)
    for b in range(25):
        for n in set(range(25)) - {b}:
            expected[b] += (max(0, 0.2 + S[b, n] - S[b, b]) + max(0, 0.2 + S[n, b] - S[b, b])) / 25
    mask = pair_mask(torch.arange(25))
    actual = pair_losses(torch.from_numpy(S), mask.negatives, 0.2)
    np.testing.assert_allclose(actual, expected)
    room = np.clip(0.2 - expected / 2, 0, 0.2)
    np.testing.assert_allclose(predict(actual, 0.2), np.minimum(room / sorted(room)[-3:][1], 1), atol=0.2)
    np.testing.assert_allclose(predict(actual, 0.2), np.minimum(room / np.mean(sorted(room)[-3:]), 1))
    assert not predict(np.full(25, 9.0), 0.2).any()


def start_of_mixture(x: Any) -> dict[str, Any]:
    """Return weights, means and precisions of the two clusters of x (n, 1) that have the least squares within."""
    halves = [[x[x <= cut], x[x > cut]] for cut in np.sort(x.ravel())[:-1]]
    low, high = min(halves, key=lambda parts: sum(len(part) * part.var() for part in parts))
    weights = np.array([len(low), len(high)]) / len(x)
    precisions = np.array([1 / (part.var() + 5e-4) for part in (low, high)])
    means = np.array([[low.mean()], [high.mean()]])
    return {"weights_init": weights, "means_init": means, "precisions_init": precisions.reshape(2, 1, 1)}


def test_the_mixture_is_that_of_scikit_learn() -> None:
    mixture = pytest.importorskip("sklearn.mixture").GaussianMixture
    for seed in range(5):
        rng = np.random.default_rng(seed)
        losses = np.concatenate([rng.gamma(2, 0.05, 300), rng.normal(1, 0.3, 60 + 40 * seed)])
        x = ((losses - losses.min()) / np.ptp(losses))[:, None]
        fitted = mixture(2, max_iter=10, tol=1e-2, reg_covar=5e-4, **start_of_mixture(x))
        expected = fitted.fit(x).predict_proba(x)[:, fitted.means_.argmin()]
        np.testing.assert_allclose(clean_probability(losses), expected, atol=1e-6)
    assert (clean_probability(np.full(7, 0.3)) == 1).all()


def test_a_split_without_any_wrong_pair_has_its_worst_hundredth_as_wrong() -> None:
    losses = np.concatenate([np.linspace(0, 0.1, 199), [1.0]])
    y = labels_of(losses, np.full(200, 0.25))
    assert (y[:199] > 0.9).all() and y[199] == 0.25
    equal = labels_of(np.full(200, 0.1), np.full(200, 0.25))
    assert (equal == 0.25).all()  # all are the worst


def test_numbers_that_an_option_gives_are_not_taken_from_info() -> None:
    traits = [build("objectives", spec).traits.optional_info for spec in ("unified", "unified:weights=ssp,margins=ncr")]
    assert traits == [("margin", "weight"), ("label",)]
