"""Does the doctor name faults within a training of 40 steps, and stay silent beside healthy twins?"""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
import torch

from lossscope.live.doctor_options import LOOKED_FOR, DoctorOptions
from lossscope.live.live_doctor import LiveDoctor
from lossscope.live.monitor import LossScope
from lossscope.live.schedule import Schedule
from lossscope.live.watched_step import WatchedStep
from tests.lengths import thorough

from .short_trainings import Training

STEPS = 40
FAULTS = {
    "collapse": (Training(collapses_at=5), "complete-collapse", 12),
    "scale of 1": (Training(tau=1.0), "temperature-too-high", 36),
    "pairs shifted by one": (Training(shift=1), "no-learning", 26),  # no batch has the right partners
}


def scope(training: Training, max_steps: int | None = STEPS, **options: Any) -> LossScope:
    given = True if max_steps is None else DoctorOptions(max_steps=max_steps)
    return LossScope(f"ntxent:tau={training.tau}", ("similarity",), doctor=given, **options)


@pytest.mark.parametrize("batch", [32, *thorough(128)])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_a_short_training_is_the_first_finding_and_stays(fault: str, batch: int) -> None:
    training, id, by = FAULTS[fault]
    training = Training(training.tau, training.collapses_at, training.shift, batch)
    watched = training.run(scope(training), STEPS)
    first = watched.events[0]
    assert (first.id, first.kind) == (id, "begins") and first.step <= by
    assert id in {finding.id for finding in watched.findings}


@pytest.mark.parametrize("seed", [0, *thorough(1, 2)])
@pytest.mark.parametrize(
    "training",
    [
        Training(),
        Training(batch=4),
        Training(batch=512),
        Training(warm_up=30),
        Training(is_trained_before=False, lr=1e-3),
        Training(is_trained_before=False),  # learns nothing in 40 steps: a loss has 200 steps to begin
    ],
    ids=["fine-tuning", "batches of 4", "batches of 512", "warm-up", "from scratch", "slow from scratch"],
)
def test_a_healthy_short_training_has_no_finding(training: Training, seed: int) -> None:
    assert not training.run(scope(training), STEPS, seed).events


def test_a_collapse_is_confirmed_within_a_few_steps_where_the_length_is_not_known() -> None:
    training = Training(collapses_at=5)
    (event, *_) = training.run(scope(training, None), STEPS).events
    assert event.id == "complete-collapse" and event.step <= 20


def test_what_was_not_examined_is_said_once_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    training = Training()
    watched = scope(training, None)
    assert watched.examined.as_json() == {"steps": None, "not_yet": sorted(LOOKED_FOR)}
    with caplog.at_level(logging.INFO, "lossscope"):
        training.run(watched, STEPS)
        watched.close()
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("not examined in 40 steps: ") and "temperature-too-low" in line and "max_steps=40" in line
    assert watched.examined.steps == (0, STEPS - 1)
    assert watched.examined.as_json() == {"steps": [0, STEPS - 1], "not_yet": list(watched.examined.not_yet)}
    json.dumps(watched.examined.as_json())
    assert "temperature-too-low" in str(watched) and "no finding in 40 steps, examined at steps 0 to 39" in str(watched)


def test_what_the_loop_lacks_is_no_matter_of_time() -> None:
    training = Training()
    watched = training.run(scope(training), STEPS)
    assert "temperature-too-low" not in watched.examined.not_yet
    assert watched.examined.cannot["frozen"] == (
        "it has neither checkpoints of two epochs nor a log with the gradient norm"
    )
    assert not set(watched.examined.cannot) & set(watched.examined.not_yet)


def test_a_loop_without_the_doctor_says_that_nothing_is_examined() -> None:
    watched = LossScope("ntxent:tau=0.1", ("similarity",))
    watched.watch(torch.eye(16))
    watched.begin(40)
    watched.close()
    assert watched.examined.steps is None and "doctor: off" in str(watched)


@pytest.mark.parametrize("steps", [1, 5, 20, 39, 40, 41, 100, 399, 400, 1333, 10**6, None])
def test_a_schedule_follows_from_the_length_and_never_exceeds_that_of_a_long_one(steps: int | None) -> None:
    short, long = Schedule.of(DoctorOptions(), steps, "apart"), Schedule.of(DoctorOptions(), None)
    assert (long.every, long.first, long.learning_by, long.settled) == (50, 100, 200, 1000)
    assert 2 <= short.every <= 50 and short.first <= short.learning_by <= 200 and short.settled <= 1000
    if steps is not None and steps >= STEPS:
        assert short.learning_by <= steps / 2 and short.settled + 2 * short.every <= steps
    mine = DoctorOptions(every=7, first=9, learning_by=11, settled=13, max_steps=40)
    assert Schedule.of(mine, steps) == Schedule(7, 9, 11, 13, 13)


def test_steps_of_a_training_are_watched_ones_and_those_that_are_left() -> None:
    for interval, max_steps, done, expected in ((1, 40, 0, 40), (10, 400, 0, 40), (2, 100, 20, 40), (1, None, 0, None)):
        doctor = LiveDoctor(every=interval)
        doctor.begin(max_steps, done)
        assert doctor._expected == expected
    doctor = LiveDoctor(DoctorOptions(max_steps=80))
    doctor.begin(40)
    assert doctor._expected == 80


def test_kinds_of_batches_that_take_turns_share_the_steps_of_a_training() -> None:
    watched, random = scope(Training()), torch.Generator().manual_seed(0)
    for step in range(STEPS):
        first = torch.randn(32, 16, generator=random)
        second = first + 0.1 * torch.randn(32, 16, generator=random)
        names = ("queries", "documents") if step % 2 else ("images", "captions")
        watched.watch(**dict(zip(names, (first, second), strict=True)))  # type: ignore[arg-type]
    assert "temperature-too-high" not in watched.examined.not_yet and not watched.events


def test_a_second_training_is_examined_from_its_start() -> None:
    training = Training()
    watched = training.run(scope(training), STEPS)
    watched.begin(STEPS)
    assert watched.examined.steps is None and watched.examined.watched == 0
    training.run(watched, STEPS)
    assert watched.examined.steps == (STEPS, 2 * STEPS - 1) and watched.examined.watched == STEPS


def test_another_objective_than_the_trained_one_diverges_only_where_recall_falls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As with a triplet loss watched as supcon: all items move together, which raises supcon, but keep their order."""

    def ids(noises: list[float], says_loss: bool = False) -> set[str]:
        random, labels = torch.Generator().manual_seed(0), torch.arange(16).repeat_interleave(4)
        centres = torch.randn(16, 64, generator=random)
        watched = LossScope("supcon:tau=0.1", ("similarity",), doctor=DoctorOptions(every=10, first=20))
        for step, noise in enumerate(noises):
            E = centres[labels] + noise * torch.randn(64, 64, generator=random) + min(step / 10, 4)
            log = {"loss": noise - step / 1000} if says_loss else None
            watched.watch(embeddings=torch.nn.functional.normalize(E, dim=1), labels=labels, log=log)
        return {event.id for event in watched.events}

    ordered, lost = [0.5] * 100, [0.5] * 40 + [8.0] * 60
    assert not ids(ordered) and not ids(ordered, says_loss=True)
    assert "diverged" in ids(lost) and "diverged" in ids(lost, says_loss=True)

    def trained(*given: Any, **options: Any) -> WatchedStep:
        return WatchedStep(*given, **{**options, "is_trained": True})

    monkeypatch.setattr("lossscope.live.monitor.WatchedStep", trained)
    assert "diverged" in ids(ordered)  # the trained loss itself rises as much


def test_batches_without_any_positive_cost_exactly_nothing() -> None:
    """A labelled set with batches of one item a class: the log has a loss of exactly 0, and no gap."""
    watched = LossScope("supcon:tau=0.1", ("similarity",), doctor=True)
    random = torch.Generator().manual_seed(0)
    for step in range(60):
        labels = torch.arange(8) // (2 if step % 20 == 0 else 1)
        watched.watch(embeddings=torch.randn(8, 16, generator=random), labels=labels)
    doctor = watched._safeguards.doctor
    assert doctor is not None
    (kind,) = doctor._kinds.values()
    losses = kind.history.log(None, 8).steps["loss"].tolist()
    assert len(losses) == 60
    assert [step for step, loss in enumerate(losses) if loss != 0] == [0, 20, 40]


def test_advice_beside_a_loop_has_no_command_of_a_file() -> None:
    """`lossscope cocos the newest batch` could not run."""
    training = FAULTS["scale of 1"][0]
    (event,) = training.run(scope(training), STEPS).events
    assert event.id == "temperature-too-high"
    assert all(advice.command is None or "newest" not in advice.command for advice in event.finding.advice)
