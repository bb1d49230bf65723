"""Rows of text data, as `lossscope data lint` sees them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lossscope.datasets.lint.suite import LintReport


@dataclass(frozen=True)
class Texts:
    """What rows of text data have of each fault, without any model."""

    absent: ClassVar[str] = "it has no rows of text"
    target: str  # file or spec
    report: LintReport
