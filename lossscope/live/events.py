"""When does a finding of a running loop begin, and when does it end?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from lossscope.doctor.types import Finding

PREFIX = "doctor/"  # of the columns of a row: 1 at the step where a finding begins, 0 where it ends
LASTING = 2  # examinations in a row that must agree before a finding begins or ends


@dataclass(frozen=True)
class Event:
    """A finding begins, or it ends."""

    step: int
    id: str
    kind: Literal["begins", "ends"]
    finding: Finding  # as it was when it began

    @property
    def column(self) -> tuple[str, float]:
        """The column in the row of the step, and its number."""
        return f"{PREFIX}{self.id}", float(self.kind == "begins")

    def __str__(self) -> str:
        """Return a line: `step 150: error no-learning begins: nothing has been learnt`."""
        return f"step {self.step}: {self.finding.severity} {self.id} {self.kind}: {self.finding.title}"

    def details(self) -> dict[str, Any]:
        """Return plain values by name, for a line of JSON."""
        finding = self.finding
        return {
            "step": self.step, "id": self.id, "kind": self.kind, "severity": finding.severity, "title": finding.title,
            "why": finding.why, "advice": [advice.text for advice in finding.advice],
        }  # fmt: skip


@dataclass
class OpenFindings:
    """Track open findings: a finding begins when found twice in a row, and ends when missed twice in a row."""

    _open: dict[str, Finding] = field(default_factory=dict, init=False)
    _found: dict[str, int] = field(default_factory=dict, init=False)  # id -> examinations in a row that found it
    _missed: dict[str, int] = field(
        default_factory=dict, init=False
    )  # id of an open finding -> examinations in a row that missed it

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the open findings, in the order in which they began."""
        return tuple(self._open)

    def __contains__(self, id: str) -> bool:
        return id in self._open

    def take_over(self, others: OpenFindings) -> None:
        """Take the open findings of `others`, which then has none."""
        self._open |= {id: finding for id, finding in others._open.items() if id not in self._open}
        for counts in (others._open, others._found, others._missed):
            counts.clear()

    def update(
        self, step: int, found: Mapping[str, Finding], checked: Iterable[str], at_once: frozenset[str]
    ) -> list[Event]:
        """Return the findings that begin or end with an examination.

        Args:
            step: its number.
            found: id -> finding.
            checked: ids of the checks that ran; other findings stay as they are.
            at_once: ids that begin when found once.
        """
        events = []
        for id, finding in found.items():
            self._missed.pop(id, None)
            self._found[id] = self._found.get(id, 0) + 1
            if id not in self._open and (id in at_once or self._found[id] >= LASTING):
                self._open[id] = finding
                events.append(Event(step, id, "begins", finding))
        for id in checked:
            if id in found:
                continue
            self._found.pop(id, None)
            if id not in self._open:
                continue
            self._missed[id] = self._missed.get(id, 0) + 1
            if self._missed[id] >= LASTING:
                del self._missed[id]
                events.append(Event(step, id, "ends", self._open.pop(id)))
        return events
