"""Examine a running loop: keep numbers of each step, and examine the newest batch now and then."""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import torch

from lossscope.core.sides import Sides
from lossscope.objectives.base import Objective

from .batch_kind import BatchKind, NewestStep
from .doctor_options import AT_ONCE, AT_START, LOOKED_FOR, OF_SCALE, DoctorOptions
from .events import Event
from .examined import Examined
from .schedule import Schedule
from .watched_step import WatchedStep

if TYPE_CHECKING:
    from lossscope.doctor.types import Finding

    from .examine_batch import Result

OnEvent = Callable[[Event], None]
_KindKey = tuple[type[Objective] | None, Sides]
LOGGER = logging.getLogger("lossscope")
_KEPT = 1000  # newest events


@dataclass
class LiveDoctor:
    """Report when a finding of a running loop begins and ends, without changing or interrupting the loop.

    Between examinations it appends numbers to a bounded history of each kind of batch, without waiting for the device.
    It logs an exception of the examination itself once for each type, and the loop goes on.
    """

    options: DoctorOptions = field(default_factory=DoctorOptions)
    on_event: OnEvent | None = None  # None: events are logged by the logger `lossscope`
    start: int = 0  # highest number of a first step; a resumed training begins with a higher number
    every: int = 1  # steps of the training from one watched step to the next
    events: deque[Event] = field(default_factory=lambda: deque(maxlen=_KEPT), init=False)
    _kinds: dict[_KindKey, BatchKind] = field(default_factory=dict, init=False)
    _newest: BatchKind | None = field(default=None, init=False)  # the kind of the newest batch
    _open: dict[str, Finding] = field(default_factory=dict, init=False)  # id -> finding, as it was when it began
    _expected: int | None = field(default=None, init=False)  # watched steps of the training; None: not known
    _steps: int = field(default=0, init=False)  # watched steps of all kinds
    _judged: set[str] = field(default_factory=set, init=False)  # ids of the checks that ran
    _cannot: dict[str, str] = field(default_factory=dict, init=False)  # id -> why its check could not run
    _at: tuple[int, int] | None = field(default=None, init=False)  # first and last examined step
    _is_finished: bool = field(default=False, init=False)  # whether no step came since the end of a training
    _faults: set[type[Exception]] = field(default_factory=set, init=False)  # of failed examinations, already logged

    def __post_init__(self) -> None:
        self._expect(self.options.max_steps)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The open findings, in the order in which they began."""
        return tuple(self._open.values())

    @property
    def examined(self) -> Examined:
        """What was checked so far, and what not yet."""
        cannot = {id: why for id, why in self._cannot.items() if id not in self._judged}
        not_yet = tuple(sorted(LOOKED_FOR - self._judged - cannot.keys()))
        return Examined(self._at, not_yet, cannot, self._steps)

    def __str__(self) -> str:
        """Return a line: `no finding in 40 steps, examined at steps 0 to 39`."""
        found = ", ".join(self._open) or "no finding"
        return f"{found} in {self._steps:,} steps, {self.examined}"

    def begin(self, max_steps: int | None, done: int = 0) -> None:
        """Begin a training; open findings stay open until they are examined.

        Args:
            max_steps: of the whole training, watched or not; None: unknown. DoctorOptions(max_steps=...) wins.
            done: steps done before a resumed training.
        """
        max_steps = self.options.max_steps or max_steps
        self._expect(None if max_steps is None else max_steps - done)
        for kind in self._kinds.values():
            kind.begin_training()
        self._steps, self._judged, self._cannot, self._at, self._is_finished = 0, set(), {}, None, False

    def say(self, numbers: Mapping[str, float]) -> None:
        """Add numbers that the loop knows to its newest step."""
        if self._newest is not None:
            self._newest.history.say(numbers)

    def see(self, step: WatchedStep) -> list[Event]:
        """Keep the numbers of a step, examine it if it is due, and return what begins and ends."""
        kind = self._newest = self._kind_of(step)
        self._is_finished = False
        return self._run(step.number, lambda: self._see(kind, step))

    def finish(self) -> list[Event]:
        """Examine the log of an ended training, log once what was not examined, and return what begins."""
        if self._is_finished or not self._steps:
            return []
        self._is_finished, events = True, []
        for kind in self._kinds.values():
            if kind.steps:
                events += self._run(kind.newest_step.number, lambda kind=kind: self._finish(kind))  # type: ignore[misc]
        if not_yet := self.examined.not_yet:
            hint = "" if self._expected is not None else (
                f". With doctor=DoctorOptions(max_steps={self._steps * self.every}) it is, as far as so few steps tell"
            )  # fmt: skip
            LOGGER.info("not examined in %s steps: %s%s", f"{self._steps:,}", ", ".join(not_yet), hint)
        return events

    def _expect(self, steps: int | None) -> None:
        """Note how many steps of the training are left; 0 means an unknown length."""
        self._expected = steps // self.every or None if steps is not None and steps > 0 else None

    def _run(self, number: int, examine: Callable[[], list[Event]]) -> list[Event]:
        """Return the events of an examination after reporting them; none where it failed."""
        try:
            with torch.inference_mode(False), torch.no_grad(), torch.autocast("cpu", enabled=False):
                events = examine()
        except Exception as error:
            if type(error) not in self._faults:
                self._faults.add(type(error))
                LOGGER.exception("the doctor could not examine step %d; the loop goes on", number)
            return []
        self.events.extend(events)
        for event in events:
            self._report(event)
        return events

    def _kind_of(self, step: WatchedStep) -> BatchKind:
        """Return the kind of a batch, and count the batch."""
        key = None if step.objective is None else type(step.objective), step.batch.sides
        kind = self._kinds.setdefault(key, BatchKind())
        self._steps += 1
        kind.steps, kind.newest = kind.steps + 1, self._steps
        kind.began = self._steps if kind.steps == 1 else kind.began
        kind.newest_step = NewestStep(step.number, step.objective, step.batch.shape[0], step.is_trained)
        return kind

    def _schedule_of(self, kind: BatchKind) -> Schedule:
        """Return the schedule of a kind; it assumes that its share of the past steps holds for the remaining steps."""
        if self._expected is None or self._expected < kind.began:
            return Schedule.of(self.options, None, kind.start)
        left, seen = self._expected - kind.began + 1, self._steps - kind.began + 1
        return Schedule.of(self.options, max(left * kind.steps // seen, 1), kind.start)

    def _see(self, kind: BatchKind, step: WatchedStep) -> list[Event]:
        numbers = kind.numbers.of(step.batch, step.objective) if step.finite else None
        logged = {**step.scale, **step.logged}
        kind.history.add(step.number, numbers, logged)
        schedule = self._schedule_of(kind)
        ids = kind.ids(schedule, step.number <= self.start, self._steps == self._expected)
        is_broken = not step.finite or not math.isfinite(logged.get("loss", 0.0))
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
        """Give the open findings of kinds that no longer come, such as a warm-up, to an examined kind."""
        for other in self._kinds.values():
            if self._steps - other.newest >= self._schedule_of(kind).window:
                kind.open.take_over(other.open)

    def _merge(self, kind: BatchKind, events: list[Event]) -> list[Event]:
        """Return the events of a kind that are events of the loop: an id is open while any kind has it."""
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
        from .examine_batch import examine_batch

        result = examine_batch(kind, step, ids, self._schedule_of(kind), is_broken)
        return self._update(kind, result)

    def _finish(self, kind: BatchKind) -> list[Event]:
        from .examine_batch import examine_log

        schedule = Schedule.of(self.options, kind.steps, kind.start)  # its steps are known now
        return self._merge(kind, self._update(kind, examine_log(kind, schedule)))

    def _update(self, kind: BatchKind, result: Result) -> list[Event]:
        """Note what was checked, and return what begins and ends."""
        number = kind.newest_step.number
        self._at = (number if self._at is None else self._at[0], number)
        self._judged |= result.judged
        self._cannot |= result.cannot
        checked = result.judged - result.unchanged
        return kind.open.update(number, result.found, checked, AT_ONCE | AT_START | result.at_once)

    def _report(self, event: Event) -> None:
        if self.on_event is not None:
            try:
                self.on_event(event)
            except Exception:
                LOGGER.exception("on_event failed at `%s`; the loop goes on", event)
            return
        is_alarm = event.finding.severity == "error" and event.kind == "begins"
        LOGGER.log(logging.WARNING if is_alarm else logging.INFO, "%s", event)
