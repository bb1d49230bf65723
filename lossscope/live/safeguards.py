"""Pass each batch of a running loop to the doctor and the flight recorder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .watched_step import WatchedStep

if TYPE_CHECKING:
    from .events import Event
    from .flight_recorder import FlightRecorder
    from .live_doctor import LiveDoctor


@dataclass
class Safeguards:
    """The doctor and the flight recorder, either or both."""

    doctor: LiveDoctor | None = None
    recorder: FlightRecorder | None = None

    def see(self, step: WatchedStep) -> list[Event]:
        """Record a step and examine it; return what begins and ends. Raises InputError unless each item has an id."""
        if self.recorder is not None:
            self.recorder.add(step)
        events = [] if self.doctor is None else self.doctor.see(step)
        self._write_begun(events)
        if not step.finite:
            self.write("non-finite")
        return events

    def finish(self) -> list[Event]:
        """Examine the log of an ended training, and return what begins and ends."""
        events = [] if self.doctor is None else self.doctor.finish()
        self._write_begun(events)
        return events

    def write(self, reason: str, details: Mapping[str, Any] | None = None) -> Path | None:
        """Write the recorded steps, and which findings the doctor has checked; return the folder."""
        if self.recorder is None:
            return None
        examined = {} if self.doctor is None else {"examined": self.doctor.examined.as_json()}
        return self.recorder.write(reason, {**(details or {}), **examined})

    def _write_begun(self, events: Iterable[Event]) -> None:
        """Write the recorded steps for each error and warning that begins."""
        for event in events:
            if event.kind == "begins" and event.finding.is_alarm:
                self.write(event.id, event.details())

    def say(self, numbers: Mapping[str, float]) -> None:
        """Add numbers that the loop knows to its newest step."""
        for safeguard in (self.doctor, self.recorder):
            if safeguard is not None:
                safeguard.say(numbers)
