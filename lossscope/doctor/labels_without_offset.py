"""Are positives of other processes read as negatives?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import Check, Finding, Missing, Severity
from .parts.patient import Patient


@dataclass(frozen=True)
class LabelsWithoutOffset(Check):
    """Are positives of other processes read as negatives? A replay of the trainer on one and two processes tells.

    Source: open_clip, the loss of one process.
    """

    severity: ClassVar[Severity] = "error"

    def examine(self, patient: Patient) -> Finding | None:
        raise Missing(
            "it needs your training step: lossscope check --trainer FILE.py:step --processes 2", "your training step"
        )
