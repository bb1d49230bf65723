"""Rows of text data, as `lossscope data lint` reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lossscope.datasets.lint.suite import LintReport

from ..types import Advice


@dataclass(frozen=True)
class Texts:
    """The faults of rows of text data, without a model."""

    absent: ClassVar[str] = "it has no rows of text"
    need: ClassVar[str] = "rows of text"
    target: str  # file or spec
    report: LintReport

    def fault(self, id: str) -> Fault | None:
        """Return a fault of the rows; None where no row has it."""
        found = next((found for found in self.report.findings if found.id == id), None)
        if found is None:
            return None
        examples = tuple(f"{row.file}, line {row.line}: {row.text}" for row in found.examples)
        advice = Advice(found.advice[0].upper() + found.advice[1:] + ".")
        return Fault(found.count, found.share, examples, (advice,))


@dataclass(frozen=True)
class Fault:
    """Rows that have a fault, as `lossscope data lint` counts them."""

    count: int
    share: float  # of all rows
    examples: tuple[str, ...]  # the first ones, by file and line
    advice: tuple[Advice, ...]
