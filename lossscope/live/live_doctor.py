"""The doctor beside a running loop: it keeps numbers of each step, and examines the newest batch now and then."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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
from .observed import Observed
from .step_history import StepHistory

if TYPE_CHECKING:
    from lossscope.doctor.base import Check
    from lossscope.doctor.types import Finding

OnEvent = Callable[[Event], None]
LOGGER = logging.getLogger("lossscope")
_KEPT = 1000  # newest events
_OF_LENGTHS = "not-normalised"


@dataclass
class LiveDoctor:
    """Says when a finding begins in a running loop and when it ends; nothing of the loop is changed or interrupted.

    Between examinations numbers are appended to a bounded history, without waiting for the device. A fault of the
    examination itself is logged, once of a kind, and the loop goes on.
    """

    options: DoctorOptions = field(default_factory=DoctorOptions)
    on_event: OnEvent | None = None  # None: events are logged by the logger `lossscope`
    events: deque[Event] = field(default_factory=lambda: deque(maxlen=_KEPT), init=False)
    _history: StepHistory = field(default_factory=StepHistory, init=False)
    _numbers: BatchNumbers = field(default_factory=BatchNumbers, init=False)
    _open: OpenFindings = field(default_factory=OpenFindings, init=False)
    _steps: int = field(default=0, init=False)
    _faults: set[type[Exception]] = field(default_factory=set, init=False)  # of examinations, that were logged
    _trained: tuple[type[Objective] | None, Sides] | None = field(default=None, init=False)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The open findings."""
        return self._open.findings

    def say(self, numbers: Mapping[str, float]) -> None:
        """Add numbers that the loop knows to its newest step."""
        self._history.say(numbers)

    def see(
        self, observed: Observed, objective: Objective | None, step: int, finite: bool, said: Mapping[str, float]
    ) -> list[Event]:
        """Keep the numbers of a step, examine it where it is its turn, and return what begins and ends.

        Args:
            observed: the batch, with rows.
            objective: that it trains with; None: the loss is known by its value alone.
            step: its number.
            finite: whether its similarities and embeddings are.
            said: numbers that the loop knows of it.
        """
        kind = (None if objective is None else type(objective), observed.sides)
        if self._trained is not None and kind != self._trained:  # a warm-up ended
            self._begin_curve()
        self._trained = kind
        self._steps += 1
        try:
            with torch.inference_mode(False), torch.no_grad(), torch.autocast("cpu", enabled=False):
                return self._see(observed, objective, step, finite, said)
        except Exception as error:
            if type(error) not in self._faults:
                self._faults.add(type(error))
                LOGGER.exception("the doctor could not examine step %d; the loop goes on", step)
            return []

    def _begin_curve(self) -> None:
        """Forget past steps: the loss is another one from here on."""
        self._history, self._steps = StepHistory(), 1

    def _see(
        self, observed: Observed, objective: Objective | None, step: int, finite: bool, said: Mapping[str, float]
    ) -> list[Event]:
        numbers = self._numbers.of(observed, objective) if finite else None
        self._history.add(step, numbers, said)
        ids = self.options.ids(self._steps)
        is_broken = not finite or any(value != value or abs(value) == float("inf") for value in said.values())
        if is_broken and "non-finite" not in self._open:
            ids |= {"non-finite"}
        if not ids:
            return []
        events = self._examine(observed, objective, step, ids, is_broken)
        for event in events:
            self.events.append(event)
            self._report(event)
            if event.id in OF_SCALE and event.kind == "ends":
                self._begin_curve()
        return events

    def _examine(
        self, observed: Observed, objective: Objective | None, step: int, ids: frozenset[str], is_broken: bool
    ) -> list[Event]:
        from lossscope.doctor.examination.causes import fold
        from lossscope.doctor.logs.base import TrainingLog
        from lossscope.doctor.parts.patient import Patient
        from lossscope.doctor.types import NotChecked

        from .batch_patient import is_known, patient_of, uses_lengths

        assert observed.rows is not None
        spec = None if objective is None or not is_known(objective) else spec_of(objective)
        size = len(observed.rows.S)
        log = self._history.log(spec, size, with_broken=is_broken)
        patient = patient_of(observed, objective, log)
        newest = Patient("the newest steps", {TrainingLog: self._history.log(spec, size, with_middle=False)})
        if _OF_LENGTHS in ids and not uses_lengths(patient, observed):
            ids -= {_OF_LENGTHS}
        absent: frozenset[str] = frozenset()  # without an examination
        if any(id in self._open for id in OF_SCALE):
            ids -= OF_LOG | OF_LEARNING
        if ids & OF_LEARNING:
            state = learning_state(self._history.newest(self.options.window), size)
            ids = ids if state == "guesses" else ids - OF_LEARNING
            absent = OF_LEARNING if state == "learns" else absent
        if ids & OF_RISE and not rises(log.steps["loss"].to_numpy(), self.options.every):
            ids, absent = ids - OF_RISE, absent | OF_RISE
        checks = [_check(id) for id in sorted(ids)]
        found, checked = [], set(absent)
        for check in checks:
            try:
                finding = check.examine(newest if check.id() in OF_NEWEST else patient)
            except NotChecked:
                continue
            checked.add(check.id())
            if finding is not None:
                found.append(finding)
        tops, _ = fold(found, {check.id(): check.place for check in checks})
        return self._open.update(step, {one.id: one for one in tops}, checked, AT_ONCE | AT_START)

    def _report(self, event: Event) -> None:
        if self.on_event is not None:
            self.on_event(event)
            return
        is_alarm = event.finding.severity == "error" and event.kind == "begins"
        LOGGER.log(logging.WARNING if is_alarm else logging.INFO, "%s", event)


@cache
def _check(id: str) -> Check:
    check: Check = build("findings", id)
    return check
