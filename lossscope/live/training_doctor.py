"""Examine a training of lossscope while it runs: `lossscope train --doctor`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from lossscope.core.pair import Pair
from lossscope.core.similarity import both_masks
from lossscope.doctor.types import SEVERITIES
from lossscope.engine.direction_rows import DirectionRows
from lossscope.objectives.base import Gradient
from lossscope.training.trained_batch import TrainedBatch

from .doctor_options import DoctorOptions
from .events import Event
from .examined import Examined
from .flight_recorder import FlightRecorder
from .live_doctor import LiveDoctor
from .observed import Observed, Row
from .safeguards import Safeguards
from .watched_step import BothIds, WatchedStep

_NAMES = {"lr": "lr", "gradient_norm": "grad_norm"}  # column of trajectory.csv -> name of the field


@dataclass
class TrainingDoctor:
    """See the batches of a training (`loop.train(..., on_batch=...)`), and say why it must stop.

    The training has bit-identical numbers with and without it. A resumed run is examined from its first new step.
    """

    on_event: Callable[[Event], None]
    stop_on: Literal["error", "warning"] | None = None  # severity from which a finding stops the training
    options: DoctorOptions = field(default_factory=DoctorOptions)
    recorder: FlightRecorder | None = None  # keeps the newest batches
    reason: Event | None = field(default=None, init=False)  # the finding that stops the training
    _safeguards: Safeguards = field(init=False)
    _doctor: LiveDoctor = field(init=False)

    def __post_init__(self) -> None:
        self._doctor = LiveDoctor(self.options, self._hear)
        self._safeguards = Safeguards(self._doctor, self.recorder)

    @property
    def examined(self) -> Examined:
        """What was checked so far, and what not yet."""
        return self._doctor.examined

    def close(self) -> None:
        """End the training: examine its log once more."""
        self._safeguards.finish()

    def __call__(self, batch: TrainedBatch) -> str | None:
        """Examine a batch; return why training must stop, or None."""
        if not self.examined.watched:
            self._doctor.begin(batch.steps, batch.number)
        observed = observed_of(batch)
        logged: Row = {name: batch.row[column] for column, name in _NAMES.items() if column in batch.row}
        logged |= {f"logit_{name}": value for name, value in batch.objective.learnable.items()} | _broken_loss(batch)
        row: Row = {"epoch": batch.epoch + 1, **batch.row}
        ids: BothIds = (None, None)
        if self.recorder is not None:
            (n, m), (first, second) = observed.shape, batch.ids
            ids = first[:n], second[:m]
        step = WatchedStep(batch.number, observed, batch.objective, bool(batch.row), row, logged, ids, is_trained=True)
        self._safeguards.see(step)
        return None if self.reason is None else str(self.reason)

    def _hear(self, event: Event) -> None:
        if self._stops(event):
            self.reason = event
        self.on_event(event)

    def _stops(self, event: Event) -> bool:
        if self.stop_on is None or self.reason is not None or event.kind != "begins":
            return False
        return SEVERITIES.index(event.finding.severity) >= SEVERITIES.index(self.stop_on)


def _broken_loss(batch: TrainedBatch) -> Row:
    """Return the loss of a training if the objective has a loss and it is not finite.

    A finite loss may be a sum over queries; the doctor computes the mean itself.
    """
    loss = batch.row.get("loss", 0.0)
    has_loss = not isinstance(batch.objective, Gradient)
    return {"loss": loss} if has_loss and not math.isfinite(loss) else {}


def observed_of(batch: TrainedBatch) -> Observed:
    """Return a batch of a training as Observed, without rows and columns beyond the mask."""
    of_images, of_captions = both_masks(batch.mask)
    q, c = of_images.match.shape
    S = batch.S[:q, :c]
    first, second = (of_images.info.get(name) for name in ("queries", "candidates"))
    vectors = None
    if first is not None and second is not None and first.ndim == second.ndim == 2:
        vectors = first[:q], second[:c]
    info = {name: x for name, x in of_images.info.items() if name not in ("queries", "candidates")}
    rows = DirectionRows(S, replace(of_images, info=info), *(vectors or (None, None)))
    observed = Observed(rows, batch.sides, embeddings=vectors)
    if batch.sides.is_one_set:
        return replace(observed, directions=("i2t",))
    return replace(observed, second=DirectionRows(S.T, of_captions)) if isinstance(batch.mask, Pair) else observed


def recorder_of(run: Path, steps: int) -> FlightRecorder | None:
    """Return a recorder of the newest batches of a run, in its folder `recorder/`; None for 0 steps."""
    return FlightRecorder(steps, run / "recorder") if steps else None
