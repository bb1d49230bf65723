"""What looks at each batch beside its statistics: the doctor, and the recorder that writes when the loop dies."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from lossscope.errors import InputError
from lossscope.objectives.base import Objective

from .doctor_options import DoctorOptions
from .observed import Observed, Row

if TYPE_CHECKING:
    from lossscope.doctor.types import Finding

    from .crash_hook import CrashHook
    from .events import Event
    from .flight_recorder import FlightRecorder
    from .live_doctor import LiveDoctor
    from .recorded_step import Ids


class Safeguards:
    """The doctor and the flight recorder of one loop, where there are any.

    Args:
        doctor: whether there is one, or with which options.
        on_event: called with each event; None: it is logged.
        every: steps from one that is watched to the next.
        recorder: newest steps that are recorded; 0: none.
        folder: of what the recorder writes.
        recorder_bytes: that these steps take at most.

    Raises:
        InputError: values out of range, or `on_event` without a doctor.
    """

    def __init__(
        self,
        doctor: bool | DoctorOptions,
        on_event: Callable[[Event], None] | None,
        every: int,
        recorder: int,
        folder: Path,
        recorder_bytes: int,
    ) -> None:
        if not isinstance(doctor, bool | DoctorOptions):
            raise InputError(f"doctor must be True, False or DoctorOptions(...); got {doctor!r}")
        for name, value in {"recorder": recorder, "recorder_bytes": recorder_bytes}.items():
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise InputError(f"{name} must be a whole number of at least 0; got {value!r}")
        if doctor is False and on_event is not None:
            raise InputError("on_event is called with what the doctor finds; write LossScope(..., doctor=True)")
        options = DoctorOptions() if doctor is True else doctor
        # trainers count from 1, and `every` skips steps before the first one that is watched
        self._doctor: LiveDoctor | None = None
        self._recorder: FlightRecorder | None = None
        self._hook: CrashHook | None = None
        if options:
            from .live_doctor import LiveDoctor

            self._doctor = LiveDoctor(options, on_event, every)
        if recorder:
            from .flight_recorder import FlightRecorder

            self._recorder = FlightRecorder(recorder, folder, recorder_bytes)

    @property
    def are_on(self) -> bool:
        """Whether there is a doctor or a recorder."""
        return self._doctor is not None or self._recorder is not None

    @property
    def events(self) -> tuple[Event, ...]:
        """What began and what ended, the newest thousand."""
        return () if self._doctor is None else tuple(self._doctor.events)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is wrong at present."""
        return () if self._doctor is None else self._doctor.findings

    @property
    def recordings(self) -> tuple[Path, ...]:
        """The folders that the recorder wrote."""
        return () if self._recorder is None else self._recorder.written

    def examine(
        self,
        observed: Observed,
        objective: Objective | None,
        step: int,
        row: Row,
        ids: tuple[Ids | None, Ids | None],
        said: Row,
    ) -> Row:
        """Examine the batch of a loss and record it; return the columns of what begins and ends.

        Args:
            observed: what the loss saw.
            objective: to look with; None: the loss itself.
            step: its number.
            row: the statistics of the batch.
            ids: of the items of both sides.
            said: further numbers of the step, by the loop.
        """
        used, finite = objective or observed.objective, bool(row["finite"])
        if self._recorder is not None:
            if self._hook is None:
                from .crash_hook import CrashHook

                self._hook = CrashHook(self, Safeguards.write)
            self._recorder.add(observed, used, ids, {"step": step, **row, **said})
        events = []
        if self._doctor is not None:
            scale = {} if objective is not None else _scale_of(observed)
            events = self._doctor.see(observed, used, step, finite, {**scale, **said})
        if self._recorder is not None:
            self._recorder.write_begun(events)
            if not finite:
                self._recorder.write("non-finite")
        return dict(event.column for event in events)

    def say(self, said: Row) -> None:
        """Add numbers to what is known of the newest step."""
        if self._doctor is not None:
            self._doctor.say(said)
        if self._recorder is not None:
            self._recorder.say(said)

    def write(self, error: BaseException | None, reason: str = "exception") -> Path | None:
        """Write the recorded steps, once for each reason; return the folder, None where nothing is kept.

        Args:
            error: that ended the loop, for the manifest.
            reason: a word for the name of the folder.
        """
        if self._recorder is None:
            return None
        return self._recorder.write(reason, {} if error is None else {"error": f"{type(error).__name__}: {error}"})

    def close(self) -> None:
        """Write nothing any more when a script dies."""
        if self._hook is not None:
            self._hook.remove()
            self._hook = None


def _scale_of(observed: Observed) -> Row:
    """Return the scale and bias that a watched loss is called with, where it is the loss itself that is watched."""
    tau, own = getattr(observed.objective, "tau", None), observed.objective
    scale = 1 / tau if isinstance(tau, float) else getattr(own, "scale", getattr(own, "logit_scale", None))
    bias = getattr(own, "bias", getattr(own, "logit_bias", None))
    given = {"logit_scale": scale, "logit_bias": bias}
    return {name: float(value) for name, value in given.items() if isinstance(value, int | float)}
