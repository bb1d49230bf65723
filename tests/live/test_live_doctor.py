"""With LossScope(doctor=True), do findings of planted faults begin and end, and do healthy loops have none?"""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from lossscope.core.similarity import Mask, pair_mask
from lossscope.doctor.types import Finding
from lossscope.engine.direction_rows import DirectionRows
from lossscope.errors import InputError
from lossscope.live.doctor_options import (
    AT_ONCE,
    AT_START,
    LOOKED_FOR,
    OF_BATCH,
    OF_COLLAPSE,
    OF_GEOMETRY,
    OF_LEARNING,
    OF_LOG,
    OF_NEWEST,
    OF_TEMPERATURE,
    DoctorOptions,
)
from lossscope.live.events import Event
from lossscope.live.live_doctor import LiveDoctor
from lossscope.live.monitor import LossScope
from lossscope.live.observed import Observed
from lossscope.live.watched_step import WatchedStep
from lossscope.registry import build, names
from tests.lengths import thorough

from .planted_loops import Loop

SOON = DoctorOptions(every=20, first=60, learning_by=80, settled=140)
GUESSES = {"no-learning", "complete-collapse", "margin-plateau", "dead-tower", "misaligned-pairs"}


def scope(objective: str = "ntxent:tau=0.1", **options: Any) -> LossScope:
    return LossScope(objective, ("similarity",), **{"doctor": SOON, **options})


def changes(monitor: LossScope) -> list[tuple[int, str, str]]:
    return [(event.step, event.id, event.kind) for event in monitor.events]


OBJECTIVES = ("ntxent:tau=0.1", "triplet", "triplet-sh", "siglip:bias=-3.4")


@pytest.mark.parametrize(
    ("objective", "takes_similarities"),
    [(OBJECTIVES[0], True), *((name, False) for name in OBJECTIVES), *thorough(*((x, True) for x in OBJECTIVES[1:]))],
)
def test_a_healthy_loop_has_no_finding(objective: str, takes_similarities: bool) -> None:
    monitor = Loop(objective, takes_similarities=takes_similarities).run(scope(objective), 200)
    assert not monitor.events and not monitor.findings


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("lr", [0.0003, 0.003, 0.02])
def test_a_healthy_loop_has_no_finding_for_long(lr: float, seed: int) -> None:
    monitor = Loop(lr=lr, seed=seed).run(scope(doctor=True), 1300)
    assert not monitor.events


@pytest.mark.parametrize(
    ("loop", "id", "by"),
    [
        (Loop(divides=True, takes_similarities=True), "temperature-twice", 0),
        (Loop(axis=0), "normalised-over-wrong-axis", 0),
        (Loop(zero_at=70), "non-finite", 70),
        (Loop(zero_at=70, takes_similarities=True), "non-finite", 70),
        (Loop(lr=0.0), "no-learning", 99),
        (Loop("siglip:bias=-12", takes_similarities=True), "siglip-start", 0),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_a_planted_fault_begins_once_at_a_sensible_step(loop: Loop, id: str, by: int) -> None:
    monitor = loop.run(scope(loop.objective), 110 if by != 99 else 160)
    begun = [(event.step, event.id) for event in monitor.events if event.kind == "begins"]
    assert begun == [(by, id)]
    assert monitor.history[by][f"doctor/{id}"] == 1.0


def test_a_loop_that_collapses_by_a_huge_learning_rate() -> None:
    monitor = Loop("triplet-sh", lr=1e4).run(scope("triplet-sh"), 200)
    assert {event.id for event in monitor.events} & GUESSES
    assert min(event.step for event in monitor.events) <= 140


def test_a_constant_tower_is_a_collapse_until_it_learns_again() -> None:
    monitor = Loop(detached=True, ends=160).run(scope(), 340)
    begun, ended = changes(monitor)[0], next(change for change in changes(monitor) if change[2] == "ends")
    assert begun[1:] in {("complete-collapse", "begins"), ("dead-tower", "begins")}
    assert ended[1] == begun[1] and 160 <= ended[0] <= 300
    assert begun[1] not in {finding.id for finding in monitor.findings}


@pytest.mark.parametrize(
    ("fault", "id"),
    [(Loop(divides=True, takes_similarities=True, ends=70), "temperature-twice"), (Loop(axis=0, ends=70),
     "normalised-over-wrong-axis"), (Loop(zero_at=70), "non-finite")],
    ids=["temperature", "axis", "zero"],
)  # fmt: skip
def test_a_finding_ends_when_its_cause_is_gone(fault: Loop, id: str) -> None:
    monitor = fault.run(scope(), 160)
    assert [(name, kind) for _, name, kind in changes(monitor)] == [(id, "begins"), (id, "ends")]
    step = changes(monitor)[1][0]
    assert monitor.history[step][f"doctor/{id}"] == 0.0
    assert not monitor.findings


def test_at_most_one_event_of_a_kind_is_open() -> None:
    monitor = Loop(zero_at=10, lr=1e4, objective="triplet-sh", ends=120).run(scope("triplet-sh"), 400)
    balance: Counter[str] = Counter()
    for _, id, kind in changes(monitor):
        balance[id] += 1 if kind == "begins" else -1
        assert balance[id] in (0, 1)


def test_batches_that_alternate_between_kinds_are_examined() -> None:
    monitor, random = LossScope("ntxent:tau=0.1", ("similarity",), doctor=SOON), torch.Generator().manual_seed(0)
    for step in range(400):  # the documents of one data set are noise; the loop learns the images of the other
        first = torch.randn(32, 16, generator=random)
        if step % 2:
            monitor.watch(queries=first, documents=torch.randn(32, 16, generator=random))
        else:
            monitor.watch(images=first, captions=first + 0.1 * torch.randn(32, 16, generator=random))
    assert [(id, kind) for _, id, kind in changes(monitor)] == [("no-learning", "begins")]
    assert changes(monitor)[0][0] % 2 and [finding.id for finding in monitor.findings] == ["no-learning"]


def test_a_finding_of_two_kinds_of_batches_is_open_once_and_ends_with_the_last() -> None:
    monitor, E = LossScope("ntxent:tau=0.1", ("similarity",), doctor=SOON), torch.eye(32)
    nan = torch.full((32, 32), torch.nan)
    for step in range(400):
        monitor.watch(queries=nan if step == 4 else E, documents=E)
        monitor.watch(images=nan if step in (5, 150) else E, captions=E)
    assert [(id, kind) for _, id, kind in changes(monitor)] == [("non-finite", kind) for kind in ("begins", "ends")] * 2
    assert monitor.events[0].finding is monitor.events[1].finding and not monitor.findings


def test_findings_of_a_warm_up_end_in_the_batches_after_it() -> None:
    monitor, E = LossScope("triplet", ("similarity",), doctor=SOON), torch.eye(32)
    for _ in range(5):
        monitor.watch(images=torch.full((32, 32), torch.nan), captions=E)
    for _ in range(100):
        monitor.watch(queries=E, documents=E)
    assert [(id, kind) for _, id, kind in changes(monitor)] == [("non-finite", "begins"), ("non-finite", "ends")]


def test_a_listener_that_fails_loses_no_event(caplog: pytest.LogCaptureFixture) -> None:
    def fail(event: Event) -> None:
        seen.append(event.id)
        raise RuntimeError("broken")

    seen: list[str] = []
    doctor, E = LiveDoctor(SOON, fail), torch.eye(32)
    nan = Observed(DirectionRows(E * torch.nan, pair_mask(torch.arange(32))))
    events = doctor.see(WatchedStep(0, nan, build("objectives", "siglip:bias=-99"), False))
    assert seen == [event.id for event in events] == [event.id for event in doctor.events]
    assert seen == ["non-finite", "siglip-start"]
    assert "on_event failed at `step 0: error non-finite begins" in caplog.text


def test_statistics_and_weights_are_the_same_with_and_without() -> None:
    S = Loop(takes_similarities=True)
    plain, watched = (S.run(scope(doctor=doctor, recorder=n), 70) for doctor, n in ((False, 0), (SOON, 3)))
    for a, b in zip(plain.history, watched.history, strict=True):
        assert a == {name: value for name, value in b.items() if not name.startswith("doctor/")}


def test_random_numbers_are_not_drawn() -> None:
    monitor = scope()
    torch.manual_seed(0)
    state = torch.get_rng_state()
    S = torch.eye(32)
    for _ in range(81):
        monitor.watch(S)
    assert torch.equal(state, torch.get_rng_state())


def test_events_reach_the_function_the_sink_and_the_log(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[Any] = []
    rows: dict[int, dict[str, float]] = {}
    monitor = Loop(divides=True, takes_similarities=True).run(scope(on_event=seen.append, sink=rows.__setitem__), 3)
    assert [event.id for event in seen] == ["temperature-twice"] and tuple(seen) == monitor.events
    assert rows[0]["doctor/temperature-twice"] == 1.0 and "doctor/temperature-twice" not in rows[1]
    assert "doctor/temperature-twice" in monitor.frame()
    assert not caplog.records
    with caplog.at_level(logging.INFO, "lossscope"):
        Loop(divides=True, takes_similarities=True, ends=1).run(scope(), 100)
    levels = [(record.levelname, record.getMessage().split(":")[0]) for record in caplog.records]
    assert levels == [("WARNING", "step 0"), ("INFO", "step 79")]


def test_a_loss_of_the_user_may_take_similarities_of_any_scale() -> None:
    def loss(S: Tensor) -> Tensor:
        return nn.functional.cross_entropy(S, torch.arange(len(S)))

    watched = LossScope(doctor=SOON)
    wrapped = watched.wrap(loss)
    for step in range(90):
        x = nn.functional.normalize(torch.randn(32, 16, generator=torch.Generator().manual_seed(step)))
        wrapped(20 * x @ x.T + 0.0 * torch.ones(1, requires_grad=True))
    assert not watched.events


def test_a_frozen_model_of_a_wrapped_loss_does_not_learn() -> None:
    def loss(S: Tensor) -> Tensor:
        return nn.functional.cross_entropy(S, torch.arange(len(S)))

    watched = LossScope(doctor=SOON)
    wrapped = watched.wrap(loss)
    for step in range(140):
        random = torch.Generator().manual_seed(step)
        first, second = (nn.functional.normalize(torch.randn(32, 16, generator=random)) for _ in range(2))
        wrapped(first @ second.T + 0.0 * torch.ones(1, requires_grad=True))
    assert "no-learning" in {event.id for event in watched.events}


def test_labelled_items_and_mined_negatives_are_examined() -> None:
    labels, random = torch.arange(8).repeat_interleave(4), torch.Generator().manual_seed(0)
    items = LossScope("supcon", ("similarity",), sides="product", doctor=SOON)
    pairs = scope("infonce:tau=0.1")
    for _ in range(170):
        E = torch.randn(32, 16, generator=random) + 4 * torch.eye(16)[labels]
        items.watch(embeddings=E, labels=labels)
        Q = torch.randn(32, 16, generator=random)
        hard = Q[:, None] + 0.01 * torch.randn(32, 2, 16, generator=random)
        pairs.watch(queries=Q, documents=Q + torch.randn(32, 16, generator=random), negatives=hard)
    assert not items.events
    assert {event.id for event in pairs.events} == {"hard-negatives-too-hard"}


def test_lengths_matter_where_the_loss_takes_products() -> None:
    class ClipLoss(nn.Module):
        """open_clip's loss."""

        def get_logits(self, image_features: Tensor, text_features: Tensor, logit_scale: Tensor) -> Any:
            logits = logit_scale * image_features @ text_features.T
            return logits, logits.T

        def forward(self, image_features: Tensor, text_features: Tensor, logit_scale: Tensor) -> Tensor:
            pairs = torch.arange(len(image_features))
            both = self.get_logits(image_features, text_features, logit_scale)
            return sum(nn.functional.cross_entropy(logits, pairs) for logits in both) / 2

    for factor, expected in ((3.0, {"not-normalised"}), (1.0, set())):
        watched = LossScope(doctor=SOON)
        loss = watched.wrap(ClipLoss())
        for step in range(90):
            random = torch.Generator().manual_seed(step)
            first = nn.functional.normalize(torch.randn(32, 16, generator=random))
            second = nn.functional.normalize(first + 0.3 * torch.randn(32, 16, generator=random))
            loss(factor * first.requires_grad_(), factor * second, torch.tensor(10.0))
        assert {event.id for event in watched.events} == expected


def test_a_zero_gradient_that_the_loop_says_is_frozen() -> None:
    monitor = scope()
    random = torch.Generator().manual_seed(0)
    for step in range(100):
        Q = torch.randn(32, 16, generator=random)
        monitor.watch(queries=Q, documents=Q + torch.randn(32, 16, generator=random), log={"grad_norm": 0.0, "lr": 0.1})
        monitor.log(val_recall=0.1 * step)
    assert [event.id for event in monitor.events] == ["frozen"]


def test_a_loss_that_the_loop_says_is_not_finite() -> None:
    monitor = scope()
    monitor.watch(torch.eye(32), log={"loss": 1.0})
    monitor.watch(torch.eye(32), log={"loss": float("nan")})
    assert changes(monitor) == [(1, "non-finite", "begins")]


def test_an_infinite_gradient_norm_as_of_a_loss_scaler_is_no_broken_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monitor, examined = scope(), []
    monkeypatch.setattr(LiveDoctor, "_examine", lambda *given: examined.append(given[4]) or [])
    for _ in range(5):
        monitor.watch(torch.eye(32), log={"grad_norm": float("inf")})
    assert examined == [0]


@pytest.mark.parametrize(("first", "found"), [(0, True), (1, True), (5000, False)])
def test_the_start_is_not_looked_for_where_a_training_is_resumed(first: int, found: bool) -> None:
    loop = Loop("siglip:bias=-12", takes_similarities=True)
    watched = scope(loop.objective)
    for step in range(first, first + 3):
        watched.watch(torch.eye(32), step=step)
    assert [event.id for event in watched.events] == ["siglip-start"] * found


def test_of_several_losses_the_one_that_is_not_finite_is_examined() -> None:
    monitor, E = scope(), torch.eye(8)
    mask = pair_mask(torch.arange(8))
    both = [Observed(DirectionRows(S, mask), name=name) for name, S in (("a", E), ("b", E * torch.nan), ("c", E))]
    monitor.record(both, 0)
    (event,) = monitor.events
    assert event.id == "non-finite" and "64 similarities are not finite" in event.finding.title


def test_a_warm_up_of_the_learning_rate_is_waited_for() -> None:
    def ids(rates: list[float]) -> set[str]:
        monitor = scope()
        for step, lr in enumerate(rates):
            random = torch.Generator().manual_seed(step)
            Q, D = torch.randn(2, 32, 16, generator=random)
            monitor.watch(queries=Q, documents=D, log={"lr": lr})
        return {event.id for event in monitor.events}

    assert not ids([step * 1e-6 for step in range(130)])
    assert ids([1e-4] * 130) == {"no-learning"}


def test_what_cannot_be_used_is_refused() -> None:
    for options, says in (
        ({"doctor": 3}, "doctor must be True"),
        ({"doctor": False, "on_event": print}, "write LossScope"),
        ({"recorder": -1}, "recorder must be"),
        ({"recorder_bytes": 1.5}, "recorder_bytes must be"),
    ):
        with pytest.raises(InputError, match=says):
            scope(**options)
    with pytest.raises(InputError, match="every of DoctorOptions"):
        DoctorOptions(every=0)
    for numbers, says in (({"gradnorm": 1.0}, "got 'gradnorm'"), ({"lr": "fast"}, "lr of a step must be a number")):
        with pytest.raises(InputError, match=says):
            scope().log(**numbers)  # type: ignore[arg-type]


def test_a_fault_of_the_examination_never_stops_the_loop(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(LiveDoctor, "_examine", fail)
    monitor = scope()
    for _ in range(70):
        assert monitor.watch(torch.eye(8)) is not None
    assert caplog.text.count("could not examine step 0") == 1 and "step 59" not in caplog.text


@pytest.mark.parametrize("objective", ["ntxent", "smoothap", "triplet"])
def test_inference_mode_and_autocast_have_no_effect(objective: str, caplog: pytest.LogCaptureFixture) -> None:
    def watched(mode: Any) -> list[tuple[int, str, str]]:
        monitor = scope(objective)
        for step in range(105):
            random = torch.Generator().manual_seed(step)
            with mode():
                monitor.watch(torch.nn.functional.normalize(torch.randn(32, 32, generator=random)))
        monitor.close()
        return changes(monitor)

    plain = watched(torch.no_grad)
    assert [id for _, id, _ in plain] == ["no-learning"]
    assert plain == watched(torch.inference_mode)
    assert plain == watched(lambda: torch.autocast("cpu", torch.bfloat16))
    assert "could not examine" not in caplog.text


def test_findings_that_are_looked_for_are_files_of_the_doctor() -> None:
    known = {name.replace("_", "-") for name in names("findings")}
    chosen = (AT_ONCE, AT_START, OF_BATCH, OF_LOG, OF_LEARNING, OF_TEMPERATURE, OF_GEOMETRY)
    assert LOOKED_FOR == set().union(*chosen) <= known and len(LOOKED_FOR) == sum(map(len, chosen))
    assert OF_NEWEST <= OF_LOG and OF_COLLAPSE <= OF_LEARNING
    checks = [build("findings", id) for id in set().union(*chosen)]
    notes = {check.id() for check in checks if check.severity == "note"}
    assert notes == {"not-normalised"}, "it is a warning where a loss takes products of the rows"


def test_a_finding_says_what_to_do() -> None:
    (event,) = Loop(divides=True, takes_similarities=True).run(scope(), 1).events
    assert isinstance(event.finding, Finding) and event.finding.advice and event.finding.evidence
    assert str(event).startswith("step 0: error temperature-twice begins: similarities reach")


def test_similarities_of_several_captions_and_of_many_rows() -> None:
    match = torch.arange(40)[:, None] == torch.arange(200)[None, :] // 5
    monitor, random = scope("smoothap"), torch.Generator().manual_seed(0)
    for _ in range(81):
        monitor.watch((0.3 * match + 0.2 * torch.rand(40, 200, generator=random)), Mask(match, torch.ones_like(match)))
    assert not monitor.events
