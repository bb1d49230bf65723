"""A check: a file of this package that looks for one finding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lossscope.core.facts import Missing as Missing
from lossscope.core.facts import TooLittle as TooLittle

from .parts.patient import Patient
from .parts.remedies import Remedy as Remedy
from .types import Advice as Advice
from .types import Evidence as Evidence
from .types import Finding as Finding
from .types import Severity as Severity


@contextmanager
def within_float64() -> Iterator[None]:
    """Raise TooLittle where a check's numbers leave the range of float64, in place of numpy's warnings."""
    try:
        with np.errstate(over="raise", divide="raise", invalid="raise"):
            yield
    except (FloatingPointError, OverflowError) as error:
        raise TooLittle(f"its numbers leave the range of float64: {error}") from None


@dataclass(frozen=True)
class Check:
    """Look for one finding. The fields are the thresholds, each with its source.

    The first line of its docstring is the question, the line `Source:` the reference.
    """

    severity: ClassVar[Severity] = "warning"
    order: ClassVar[int] = 50  # position among findings of one severity: causes come first
    # ("at most", name of a threshold): values of its signal at which it has no finding; None: it compares several
    healthy: ClassVar[tuple[str, str] | None] = None
    explains: ClassVar[tuple[str, ...]] = ()  # ids of its symptoms, which stand under it in a list

    def examine(self, patient: Patient) -> Finding | None:
        """Return the finding, or None. Raises Missing where the source lacks what the check needs."""
        raise NotImplementedError

    def remedies(self, patient: Patient) -> Sequence[Remedy]:
        """Return ways to undo the finding; empty where frozen vectors cannot be mended."""
        return ()

    @classmethod
    def id(cls) -> str:
        """Return the id: the name of the file, with `-`."""
        return cls.__module__.rpartition(".")[2].replace("_", "-")

    @classmethod
    def reference(cls) -> str:
        """Return the source that its docstring names."""
        text = " ".join((cls.__doc__ or "").split())
        return text.partition("Source: ")[2].rstrip(".")

    def finding(
        self,
        title: str,
        why: str,
        evidence: tuple[Evidence, ...],
        advice: tuple[Advice, ...],
        severity: Severity | None = None,
        examples: tuple[str, ...] = (),
    ) -> Finding:
        """Build the finding.

        Args:
            title: a few words.
            why: one sentence.
            evidence: the numbers that prove it, the most telling first.
            advice: what to do, the most promising first.
            severity: None: the severity of the check.
            examples: rows or items that show it.
        """
        return Finding(
            self.id(), severity or self.severity, title, why, evidence, advice, self.reference(), self.explains,
            examples=examples,
        )  # fmt: skip
