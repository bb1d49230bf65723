"""Does the history of steps keep both ends in bounded memory, and can the doctor read it as a training log?"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lossscope.core.similarity import Mask, pair_mask
from lossscope.engine.direction_rows import DirectionRows
from lossscope.live.batch_numbers import BatchNumbers
from lossscope.live.learning import learning_state, rises
from lossscope.live.observed import Observed, labels_of
from lossscope.live.step_history import StepHistory
from lossscope.registry import build


def numbers(loss: float) -> torch.Tensor:
    return torch.tensor([loss, 0.5, 0.6, 0.3, 0.1], dtype=torch.float64)


@given(st.integers(0, 6000))
def test_memory_is_bounded_and_both_ends_are_whole(steps: int) -> None:
    history = StepHistory()
    for step in range(steps):
        history.add(step, None if step % 7 == 3 else (1.0, 0.5, 0.6, 0.3, 0.1), {})  # type: ignore[arg-type]
    kept = history.log(None, None, with_broken=True).steps["step"].tolist()
    assert len(kept) <= 50 + 401 + 500
    assert kept == sorted(set(kept))
    assert kept[:50] == list(range(min(steps, 50))) and kept[-500:] == list(range(steps))[-500:][-len(kept) :]


def test_steps_that_are_not_finite_are_in_the_log_only_where_they_are_wanted() -> None:
    history = StepHistory()
    for step in range(30):
        history.add(step, None if step in (4, 5) else numbers(step), {"lr": 0.1})
    assert len(history.log("ntxent", 32).steps) == 28
    loss = history.log("ntxent", 32, with_broken=True).steps["loss"]
    assert loss.isna().tolist() == [step in (4, 5) for step in range(30)]
    assert set(history.log(None, None).steps) == {"step", "loss", "train_recall", "positive", "hardest_negative", "lr"}


def test_a_loss_that_is_not_computed_is_the_one_before_it() -> None:
    history = StepHistory()
    for step in range(6):
        history.add(step, numbers(step if step % 3 == 1 else float("nan")), {})
    assert history.log(None, None).steps["loss"].tolist() == [1, 1, 1, 1, 4, 4]


def test_what_the_loop_says_takes_the_place_of_the_loss_and_evaluations_are_apart() -> None:
    history = StepHistory()
    for step in range(4):
        history.add(step, numbers(9.0), {"loss": float(step)})
    history.say({"val_recall": 0.3, "val_loss": 1.0, "logit_scale": 14.0})
    log = history.log(None, None)
    assert log.steps["loss"].tolist() == [0, 1, 2, 3] and log.steps["logit_scale"].iloc[-1] == 14
    assert log.evaluations.to_dict("records") == [{"step": 3.0, "val_recall": 0.3, "val_loss": 1.0}]


def test_a_loss_that_is_said_now_and_then_does_not_replace_the_curve_of_the_batches() -> None:
    history = StepHistory()
    for step in range(40):
        history.add(step, numbers(step), {"loss": 7.0} if step % 10 == 0 else {})
    assert history.log(None, None).steps["loss"].tolist() == list(range(40))
    assert history.newest(20)["loss"].tolist() == list(range(20, 40))


def test_a_loss_that_is_said_where_none_of_the_batches_is_known_is_the_curve() -> None:
    history = StepHistory()
    for step in range(40):
        history.add(step, numbers(float("nan")), {"loss": 7.0} if step % 10 == 0 else {})
    assert history.log(None, None).steps["loss"].tolist() == [7.0] * 40


def test_a_step_is_broken_by_its_batch_or_by_the_loss_that_is_said() -> None:
    history = StepHistory()
    for step in range(6):
        said = {"loss": float("inf") if step == 4 else 1.0, "grad_norm": float("inf")}
        history.add(step, None if step == 2 else numbers(1.0), said)
    assert history.log(None, None).steps["step"].tolist() == [0, 1, 3, 5]
    loss = history.log(None, None, with_broken=True).steps["loss"]
    assert loss.isna().tolist() == [step in (2, 4) for step in range(6)]


@pytest.mark.parametrize("objective", ["ntxent", "triplet", "siglip", "smoothap"])
def test_numbers_of_a_batch_are_those_of_its_first_rows(objective: str) -> None:
    S = 0.3 * torch.randn(200, 200, generator=torch.Generator().manual_seed(0)) + 0.2 * torch.eye(200)
    rows = DirectionRows(S, pair_mask(torch.arange(200)))
    criterion = build("objectives", objective)
    loss, recall, positive, hardest, chance = BatchNumbers().of(Observed(rows), criterion).tolist()
    assert chance == pytest.approx(1 / 200)
    first = S[:128]
    assert recall == pytest.approx(float((first.argmax(1) == torch.arange(128)).double().mean()))
    assert positive == pytest.approx(float(first.diagonal().mean()))
    others = first.masked_fill(torch.eye(128, 200, dtype=torch.bool), -9)
    assert hardest == pytest.approx(float(others.amax(1).mean()))
    values = criterion(S, pair_mask(torch.arange(200))).values
    assert loss == pytest.approx(float((values if criterion.coupled else values[:128]).mean()), rel=1e-5)


def test_equal_similarities_are_ranked_by_lot() -> None:
    rows = DirectionRows(torch.ones(8, 8), pair_mask(torch.arange(8)))
    assert BatchNumbers().of(Observed(rows), None).tolist()[1] == pytest.approx(1 / 8)


def test_rows_without_a_positive_are_left_out() -> None:
    match = torch.eye(4, dtype=torch.bool)
    match[3] = False
    S = torch.eye(4)
    loss, recall, *_ = BatchNumbers().of(
        Observed(DirectionRows(S, Mask(match, torch.ones_like(match)))), build("objectives", "ntxent")
    )
    assert float(recall) == 1 and bool(torch.isfinite(loss))


def test_a_loop_learns_where_loss_or_recall_get_better() -> None:
    flat = {"loss": np.full(100, 3.4), "train_recall": np.full(100, 1 / 32), "chance": np.full(100, 1 / 32)}
    unknown = np.full(100, np.nan)
    assert learning_state({**flat, "lr": unknown}, 32) == "guesses"
    assert learning_state({**flat, "lr": np.linspace(0, 1, 100)}, 32) == "warms up"
    assert learning_state({**flat, "lr": np.linspace(1, 0, 100)}, 32) == "guesses"
    assert learning_state({**flat, "train_recall": np.full(100, 0.1), "lr": unknown}, 32) == "learns"
    assert learning_state({**flat, "loss": np.linspace(3.4, 3.2, 100), "lr": unknown}, 32) == "falls"


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30))
def test_labels_follow_from_what_matches(labels: list[int]) -> None:
    y = torch.tensor(labels)
    match = (y[:, None] == y[None, :]) & ~torch.eye(len(y), dtype=torch.bool)
    found = labels_of(match)
    assert ((found[:, None] == found[None, :]) == (y[:, None] == y[None, :]).numpy()).all()


def test_a_loss_rises_where_it_is_above_what_it_had_been_by_more_than_its_noise() -> None:
    random = np.random.default_rng(0)
    noise = random.standard_cauchy(400)  # outliers change nothing
    assert not any(rises(noise[:n], 20) for n in range(20, 400))
    assert rises(np.concatenate([noise, 5 + noise[:40]]), 20)
    assert not rises(np.zeros(100), 20) and not rises(np.zeros(0), 20)
