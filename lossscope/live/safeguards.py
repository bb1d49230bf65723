"""Who looks at each batch of a running loop beside its statistics: the doctor and the flight recorder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

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
        """Record a step and examine it; return what begins and ends. Raises InputError for ids not one an item."""
        if self.recorder is not None:
            self.recorder.add(step)
        events = [] if self.doctor is None else self.doctor.see(step)
        if self.recorder is not None:
            self.recorder.write_begun(events)
            if not step.finite:
                self.recorder.write("non-finite")
        return events

    def finish(self) -> list[Event]:
        """Examine the log of a training that has ended, and return what begins and ends."""
        events = [] if self.doctor is None else self.doctor.finish()
        if self.recorder is not None:
            self.recorder.write_begun(events)
        return events

    def say(self, numbers: Mapping[str, float]) -> None:
        """Add numbers that the loop knows to its newest step."""
        for safeguard in (self.doctor, self.recorder):
            if safeguard is not None:
                safeguard.say(numbers)
