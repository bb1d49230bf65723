"""One step of a running loop, and who looks at its batch beside the statistics: the doctor and the flight recorder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy.typing as npt
from torch import Tensor

from lossscope.engine.direction_rows import DirectionRows
from lossscope.objectives.base import Objective

from .observed import Observed, Row

if TYPE_CHECKING:
    from .events import Event
    from .flight_recorder import FlightRecorder
    from .live_doctor import LiveDoctor

Ids = Sequence[object] | Tensor | npt.NDArray[Any]
BothIds = tuple[Ids | None, Ids | None]  # of the items of both sides; None: they are not known


@dataclass(frozen=True)
class WatchedStep:
    """A step, its batch, and what is known of it."""

    number: int
    batch: Observed  # with rows
    objective: Objective | None  # that it trains with; None: the loss is known by its value alone
    finite: bool  # whether its similarities and embeddings are
    row: Row = field(default_factory=dict)  # its statistics
    said: Row = field(default_factory=dict)  # numbers that the loop knows of it
    ids: BothIds = (None, None)

    @property
    def rows(self) -> DirectionRows:
        """The rows of the first direction."""
        assert self.batch.rows is not None
        return self.batch.rows

    @property
    def scale(self) -> Row:
        """The scale and bias that the loss is called with, where it is the loss itself that is watched."""
        loss = self.batch.objective if self.batch.objective is self.objective else None
        tau = getattr(loss, "tau", None)
        scale = 1 / tau if isinstance(tau, float) else getattr(loss, "scale", getattr(loss, "logit_scale", None))
        bias = getattr(loss, "bias", getattr(loss, "logit_bias", None))
        given = {"logit_scale": scale, "logit_bias": bias}
        return {name: float(value) for name, value in given.items() if isinstance(value, int | float)}


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

    def say(self, numbers: Mapping[str, float]) -> None:
        """Add numbers that the loop knows to its newest step."""
        for safeguard in (self.doctor, self.recorder):
            if safeguard is not None:
                safeguard.say(numbers)
