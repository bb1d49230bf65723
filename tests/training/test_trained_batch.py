"""Does a callback see each batch of a training, change nothing, and stop it if it asks to?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from lossscope.core.pair import Pair
from lossscope.core.similarity import both_masks
from lossscope.errors import InputError, Stopped
from lossscope.io.run_folder import Run
from lossscope.live.doctor_options import DoctorOptions
from lossscope.live.events import Event
from lossscope.live.flight_recorder import FlightRecorder
from lossscope.live.training_doctor import TrainingDoctor, observed_of
from lossscope.registry import build
from lossscope.sources.checkpoints.checkpoint import Checkpoint
from lossscope.training import forward
from lossscope.training.loop import resume, train
from lossscope.training.monitor import ProbeSchedule
from lossscope.training.observers import Observers
from lossscope.training.recipe import Recipe
from lossscope.training.trained_batch import TrainedBatch

from ..tiny import RECIPE

SOON = DoctorOptions(every=2, first=3, learning_by=4, settled=5)


def recipe(objective: str = "ntxent", **choices: object) -> Recipe:
    return replace(RECIPE, **{"objective": objective, "batch_size": 16, **choices})  # type: ignore[arg-type]


def same(a: Run, b: Run) -> None:
    first, second = Checkpoint.load(a.last).weights, Checkpoint.load(b.last).weights
    assert first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)
    for left, right in ((a.trajectory, b.trajectory), (a.metrics, b.metrics), (a.config, b.config)):
        assert left.read_bytes() == right.read_bytes()


@pytest.mark.parametrize(
    "objective",
    [
        "ntxent",
        *(pytest.param(o, marks=pytest.mark.thorough) for o in ("meta_spn", "triplet-sh", "siglip", "smoothap")),
    ],
)
def test_training_is_the_same_bit_for_bit_with_and_without_the_doctor(objective: str, tmp_path: Path) -> None:
    plain = train(recipe(objective), tmp_path / "plain")
    events: list[Event] = []
    doctor = TrainingDoctor(events.append, None, SOON, FlightRecorder(3, tmp_path / "recorder", 10**8))
    watched = train(recipe(objective), tmp_path / "watched", observers=Observers(on_batch=doctor))
    same(plain, watched)
    probed = train(
        recipe(objective), tmp_path / "both", observers=Observers(on_batch=TrainingDoctor(events.append, None, SOON)),
        probe_schedule=ProbeSchedule(("cocos",), 2),
    )  # fmt: skip
    same(plain, probed)


def test_every_batch_is_seen_as_it_was_trained(tmp_path: Path) -> None:
    seen: list[TrainedBatch] = []
    run = train(recipe(), tmp_path / "run", observers=Observers(on_batch=lambda batch: seen.append(batch)))  # type: ignore[func-returns-value]
    steps = len(run.trajectory.read_text().splitlines()) - 1
    assert [batch.number for batch in seen] == list(range(steps))
    assert [(batch.epoch, batch.step) for batch in seen] == sorted((batch.epoch, batch.step) for batch in seen)
    for batch in seen:
        first, second = batch.ids
        assert batch.S.shape == (len(first), len(second)) and not batch.S.requires_grad
        assert batch.row["loss"] == batch.row["loss"] and batch.row["lr"] > 0
        observed = observed_of(batch)
        assert observed.rows is not None and observed.embeddings is not None
        V, T = observed.embeddings
        assert torch.allclose(V @ T.T, batch.S, atol=1e-5)
        masks = both_masks(batch.mask)
        assert isinstance(masks, Pair) and masks.i2t.match.shape == batch.S.shape


def test_a_listener_stops_a_training_and_it_resumes_to_the_same_bits(tmp_path: Path) -> None:
    plain = train(recipe(), tmp_path / "plain")
    last = len(plain.trajectory.read_text().splitlines()) - 1
    for number in (1, last // 2 - 1, last // 2):  # within an epoch, in its last step, in the first of the next
        folder = tmp_path / f"run-{number}"
        with pytest.raises(Stopped, match="enough"):
            train(
                recipe(),
                folder,
                observers=Observers(on_batch=lambda batch, at=number: "enough" if batch.number == at else None),
            )
        assert Run(folder).events()[-1]["event"] == "interrupted" and Run(folder).events()[-1]["reason"] == "enough"
        same(plain, resume(folder))


def test_a_reason_in_the_last_step_lets_the_run_finish(tmp_path: Path) -> None:
    plain = train(recipe(), tmp_path / "plain")
    last = len(plain.trajectory.read_text().splitlines()) - 2
    run = train(
        recipe(), tmp_path / "run", observers=Observers(on_batch=lambda batch: "late" if batch.number == last else None)
    )
    assert run.events()[-1]["event"] == "finished"
    same(plain, run)


def test_the_batch_that_is_not_finite_is_seen_before_training_dies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_forward = forward.Forward.run

    def broken(self: object, *arguments: object) -> object:
        done = run_forward(self, *arguments)  # type: ignore[arg-type]
        if len(seen) == 3:
            done.S.data[2, 3] = torch.nan
        return done

    seen: list[TrainedBatch] = []
    monkeypatch.setattr(forward.Forward, "run", broken)
    events: list[Event] = []
    doctor = TrainingDoctor(events.append, "error", recorder=FlightRecorder(2, tmp_path / "recorder", 10**8))

    def listen(batch: TrainedBatch) -> str | None:
        seen.append(batch)
        return doctor(batch)

    with pytest.raises(InputError, match="not finite"):
        train(recipe(), tmp_path / "run", observers=Observers(on_batch=listen))
    assert not seen[-1].row and not bool(torch.isfinite(seen[-1].S).all())
    assert [event.id for event in events] == ["non-finite"] and doctor.reason is events[0]
    (folder,) = (tmp_path / "recorder").iterdir()
    assert folder.name == "step-000003-non-finite" and len(list(folder.glob("*.npz"))) == 2


def test_a_listener_that_fails_does_not_hide_why_the_training_stops(tmp_path: Path) -> None:
    def fail(event: Event) -> None:
        raise RuntimeError("the disk is full")

    doctor = TrainingDoctor(fail, "warning")
    with pytest.raises(Stopped, match="siglip-start"):
        train(recipe("siglip:bias=-12"), tmp_path / "run", observers=Observers(on_batch=doctor))
    assert doctor.reason is not None and doctor.reason.id == "siglip-start"


def test_a_loss_that_is_not_finite_is_found_where_the_similarities_are(tmp_path: Path) -> None:
    nan, batches = float("nan"), list[TrainedBatch]()
    train(recipe(), tmp_path / "run", observers=Observers(on_batch=lambda batch: batches.append(batch)))  # type: ignore[func-returns-value]
    for objective, found in ((batches[0].objective, ["non-finite"]), (build("objectives", "goal"), [])):
        events: list[Event] = []
        doctor = TrainingDoctor(events.append)
        for batch in batches[:2]:
            row = {**batch.row, "loss": nan, "gradient_norm": nan} if batch.number else batch.row
            doctor(replace(batch, objective=objective, row=row))
        assert [event.id for event in events] == found


def test_a_resumed_training_is_not_judged_as_a_start(tmp_path: Path) -> None:
    batches: list[TrainedBatch] = []
    listen = batches.append
    train(recipe("siglip:bias=-12"), tmp_path / "run", observers=Observers(on_batch=lambda batch: listen(batch)))  # type: ignore[func-returns-value]
    for first, found in ((0, ["siglip-start"]), (1, [])):
        events: list[Event] = []
        doctor = TrainingDoctor(events.append)
        doctor(batches[first])
        assert [event.id for event in events] == found
