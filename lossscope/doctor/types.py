"""A finding: a fault with its id, the numbers that prove it, and advice."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("note", "warning", "error")  # the mildest first
Bound = float | None  # None: without a limit


@dataclass(frozen=True)
class Evidence:
    """A number that proves a finding, its threshold, and where it lies in healthy trainings."""

    statistic: str  # name of the number, in the reader's words
    value: float
    threshold: float | None  # a value beyond it is a finding
    healthy: tuple[Bound, Bound]  # of trainings that work
    low: float | None = None  # of its 95 % interval, where it is an estimate
    high: float | None = None


@dataclass(frozen=True)
class Advice:
    """A sentence of advice, with a command where there is one."""

    text: str
    command: str | None = None
    remedy: str = ""  # `Remedy.what` of a cure that must restore something; empty: always advise it


@dataclass(frozen=True)
class Cure:
    """A fault undone on the frozen vectors: the change, and a statistic before and after it."""

    what: str  # `without the 3 candidates that win most rankings`
    statistic: str  # `recall@1 i2t`
    before: float
    after: float
    possible: float  # the best that the same vectors can reach, as far as it is known

    @property
    def restored(self) -> float:
        """Share of the way from before to possible that the cure restores, 0 to 1."""
        way = self.possible - self.before
        return min(max((self.after - self.before) / way, 0.0), 1.0) if abs(way) > 1e-9 else 0.0


@dataclass(frozen=True)
class Finding:
    """A fault, its reason, its proof, and advice."""

    id: str
    severity: Severity
    title: str  # a few words
    why: str  # one sentence
    evidence: tuple[Evidence, ...]
    advice: tuple[Advice, ...]
    reference: str
    can_explain: tuple[str, ...] = ()  # ids of its symptoms
    explains: tuple[str, ...] = ()  # the symptoms that were found; they stand under this finding
    examples: tuple[str, ...] = field(default=())  # rows or items that show it
    cure: Cure | None = None  # None: no cure was tried

    @property
    def is_alarm(self) -> bool:
        """Whether it is an error or a warning."""
        return self.severity != "note"
