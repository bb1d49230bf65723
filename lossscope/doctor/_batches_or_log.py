"""Findings of an objective in its batches, or of the log of a training."""

from __future__ import annotations

from collections.abc import Callable

from .base import Finding, Missing
from .logs.base import TrainingLog
from .parts.batches import Batches
from .parts.curve import Curve
from .parts.patient import Patient


def of_batches_or_log(
    patient: Patient, of_batches: Callable[[Batches], Finding | None], of_curve: Callable[[Curve], Finding | None]
) -> Finding | None:
    """Return the finding of the batches, else the finding of the log. Raises Missing where the source has neither."""
    if patient.has(Batches):
        found = of_batches(patient.part(Batches))
        if found is not None or not patient.has(Curve):
            return found
    if not patient.has(TrainingLog):
        raise Missing(
            "it has neither an objective with its batches nor a log",
            "the objective (--objective) or a training log (--log)",
        )
    return of_curve(patient.part(Curve))
