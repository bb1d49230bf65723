"""State what the doctor of a running loop has checked, and what not yet; otherwise "no finding" means little."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Examined:
    """Which steps were examined, and which ids could not be judged so far."""

    steps: tuple[int, int] | None  # numbers of the first and last examined step; None: no step yet
    not_yet: tuple[str, ...]  # ids that were not checked yet, in alphabetical order
    cannot: Mapping[str, str] = field(default_factory=dict)  # id -> why its check cannot run in this loop
    watched: int = 0  # number of watched steps

    def as_json(self) -> dict[str, Any]:
        """Return `examined` of lossscope.doctor/1."""
        return {"steps": None if self.steps is None else list(self.steps), "not_yet": list(self.not_yet)}

    def __str__(self) -> str:
        """Return a line: `examined at steps 5 to 40; not yet: temperature-too-high, temperature-too-low`."""
        if self.steps is None:
            return "not examined yet"
        first, last = self.steps
        at = f"examined at step {first:,}" if first == last else f"examined at steps {first:,} to {last:,}"
        return f"{at}; not yet: {', '.join(self.not_yet)}" if self.not_yet else at
