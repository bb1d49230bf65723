"""The doctor beside a running loop: it keeps numbers of each step, and examines the newest batch now and then."""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING

import torch

from lossscope.core.sides import Sides
from lossscope.objectives.base import Objective
from lossscope.registry import build, spec_of

from .batch_numbers import BatchNumbers
from .doctor_options import AT_ONCE, AT_START, OF_LEARNING, OF_LOG, OF_NEWEST, OF_RISE, OF_SCALE, DoctorOptions
from .events import Event, OpenFindings
from .learning import learning_state, rises
from .step_history import StepHistory
from .watched_step import WatchedStep

if TYPE_CHECKING:
    from lossscope.doctor.base import Check
    from lossscope.doctor.types import Finding

OnEvent = Callable[[Event], None]
_KindKey = tuple[type[Objective] | None, Sides]
LOGGER = logging.getLogger("lossscope")
_KEPT = 1000  # newest events
_OF_LENGTHS = "not-normalised"


@dataclass
class BatchKind:
    """The batches of one type of objective and one pair of sides: a loop that takes turns has a curve for each kind."""

    history: StepHistory = field(default_factory=StepHistory)
    numbers: BatchNumbers = field(default_factory=BatchNumbers)
    open: OpenFindings = field(default_factory=OpenFindings)
    steps: int = 0  # watched ones of this kind
    newest: int = 0  # the newest of them, counted among the watched steps of all kinds

    def begin_curve(self) -> None:
        """Forget past steps: the loss is another one from here on."""
        self.history, self.steps = StepHistory(), 1


@dataclass
class LiveDoctor:
    """Says when a finding begins in a running loop and when it ends; nothing of the loop is changed or interrupted.

    Between examinations numbers are appended to a bounded history of each kind of batches, without waiting for the
    device. A fault of the examination itself is logged, once of a type, and the loop goes on.
    """

    options: DoctorOptions = field(default_factory=DoctorOptions)
    on_event: OnEvent | None = None  # None: events are logged by the logger `lossscope`
    start: int = 0  # highest number of the step that a training begins with; a resumed one begins with a higher one
    events: deque[Event] = field(default_factory=lambda: deque(maxlen=_KEPT), init=False)
    _kinds: dict[_KindKey, BatchKind] = field(default_factory=dict, init=False)
    _newest: BatchKind | None = field(default=None, init=False)  # the kind of the newest batch
    _open: dict[str, Finding] = field(default_factory=dict, init=False)  # id -> finding, as it was when it began
    _steps: int = field(default=0, init=False)  # watched ones of all kinds
    _faults: set[type[Exception]] = field(default_factory=set, init=False)  # of examinations, that were logged

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The open findings, in the order in which they began."""
        return tuple(self._open.values())

    def say(self, numbers: Mapping[str, float]) -> None:
        """Add numbers that the loop knows to its newest step."""
        if self._newest is not None:
            self._newest.history.say(numbers)

    def see(self, step: WatchedStep) -> list[Event]:
        """Keep the numbers of a step, examine it where it is its turn, and return what begins and ends."""
        kind = self._newest = self._kind_of(step.objective, step.batch.sides)
        try:
            with torch.inference_mode(False), torch.no_grad(), torch.autocast("cpu", enabled=False):
                events = self._see(kind, step)
        except Exception as error:
            if type(error) not in self._faults:
                self._faults.add(type(error))
                LOGGER.exception("the doctor could not examine step %d; the loop goes on", step.number)
            return []
        self.events.extend(events)
        for event in events:
            self._report(event)
        return events

    def _kind_of(self, objective: Objective | None, sides: Sides) -> BatchKind:
        """Return the kind of a batch, which is counted."""
        kind = self._kinds.setdefault((None if objective is None else type(objective), sides), BatchKind())
        self._steps += 1
        kind.steps, kind.newest = kind.steps + 1, self._steps
        return kind

    def _see(self, kind: BatchKind, step: WatchedStep) -> list[Event]:
        numbers = kind.numbers.of(step.batch, step.objective) if step.finite else None
        said = {**step.scale, **step.said}
        kind.history.add(step.number, numbers, said)
        ids = self.options.ids(kind.steps) - (AT_START if step.number > self.start else frozenset())
        is_broken = not step.finite or not math.isfinite(said.get("loss", 0.0))
        if is_broken and "non-finite" not in kind.open:
            ids |= {"non-finite"}
        if not ids:
            return []
        self._take_over(kind)
        events = self._examine(kind, step, ids, is_broken)
        if any(event.id in OF_SCALE and event.kind == "ends" for event in events):
            kind.begin_curve()
        return self._merge(kind, events)

    def _take_over(self, kind: BatchKind) -> None:
        """Leave the open findings of kinds that come no more, as those of a warm-up, to one that is examined."""
        for other in self._kinds.values():
            if self._steps - other.newest >= self.options.window:
                kind.open.take_over(other.open)

    def _merge(self, kind: BatchKind, events: list[Event]) -> list[Event]:
        """Return the events of a kind that are events of the loop: in this an id is open while any kind has it."""
        elsewhere = {id for other in self._kinds.values() if other is not kind for id in other.open.ids}
        merged = []
        for event in events:
            if event.kind == "begins" and event.id not in self._open:
                self._open[event.id] = event.finding
                merged.append(event)
            elif event.kind == "ends" and event.id not in elsewhere:
                merged.append(replace(event, finding=self._open.pop(event.id)))
        return merged

    def _examine(self, kind: BatchKind, step: WatchedStep, ids: frozenset[str], is_broken: bool) -> list[Event]:
        from lossscope.core.facts import Missing
        from lossscope.doctor.examination.causes import fold
        from lossscope.doctor.logs.base import TrainingLog
        from lossscope.doctor.parts.patient import Patient

        from .batch_patient import is_known, patient_of, uses_lengths

        objective, size = step.objective, len(step.batch.first.S)
        spec = None if objective is None or not is_known(objective) else spec_of(objective)
        log = kind.history.log(spec, size, with_broken=is_broken)
        patient = patient_of(step.batch, objective, log)
        if _OF_LENGTHS in ids:
            patient.takes_products = uses_lengths(patient, step.batch.first)
            ids = ids if patient.takes_products else ids - {_OF_LENGTHS}
        absent: frozenset[str] = frozenset()  # without an examination
        if any(id in kind.open for id in OF_SCALE):
            ids -= OF_LOG | OF_LEARNING
        if ids & OF_LEARNING:
            state = learning_state(kind.history.newest(self.options.window), size)
            ids = ids if state == "guesses" else ids - OF_LEARNING
            absent = OF_LEARNING if state == "learns" else absent
        if ids & OF_RISE and not rises(log.steps["loss"].to_numpy(), self.options.every):
            ids, absent = ids - OF_RISE, absent | OF_RISE
        newest = Patient("the newest steps")
        if ids & OF_NEWEST:
            newest.given[TrainingLog] = kind.history.log(spec, size, with_middle=False)
        checks = [_check(id) for id in sorted(ids)]
        found, checked = [], set(absent)
        for check in checks:
            try:
                finding = check.examine(newest if check.id() in OF_NEWEST else patient)
            except Missing:
                continue
            checked.add(check.id())
            if finding is not None:
                found.append(finding)
        tops, _ = fold(found, {check.id(): check.place for check in checks})
        return kind.open.update(step.number, {finding.id: finding for finding in tops}, checked, AT_ONCE | AT_START)

    def _report(self, event: Event) -> None:
        if self.on_event is not None:
            try:
                self.on_event(event)
            except Exception:
                LOGGER.exception("on_event failed at `%s`; the loop goes on", event)
            return
        is_alarm = event.finding.severity == "error" and event.kind == "begins"
        LOGGER.log(logging.WARNING if is_alarm else logging.INFO, "%s", event)


@cache
def _check(id: str) -> Check:
    check: Check = build("findings", id)
    return check
