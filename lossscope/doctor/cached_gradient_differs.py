"""Does a cached or chunked gradient differ from the plain one?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import Check, Finding, Missing, Severity
from .parts.patient import Patient


@dataclass(frozen=True)
class CachedGradientDiffers(Check):
    """Does a cached or chunked gradient differ from the plain one? A replay of the trainer tells.

    Source: sentence-transformers pull requests 3862 and 3453.
    """

    severity: ClassVar[Severity] = "error"

    def examine(self, patient: Patient) -> Finding | None:
        raise Missing(
            "it needs your training step: lossscope check --trainer FILE.py:step --processes 2", "your training step"
        )
