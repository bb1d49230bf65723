"""Does gathering from other processes lose the gradient?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import Check, Finding, Missing, Severity
from .parts.patient import Patient


@dataclass(frozen=True)
class GatherWithoutGradient(Check):
    """Does gathering from other processes lose the gradient? A replay of the trainer on one and two processes tells.

    Source: lightly issue 1977; open_clip issue 616.
    """

    severity: ClassVar[Severity] = "error"

    def examine(self, patient: Patient) -> Finding | None:
        raise Missing(
            "it needs your training step: lossscope check --trainer FILE.py:step --processes 2", "your training step"
        )
