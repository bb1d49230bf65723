"""What the doctor keeps of the batches of one kind: those of one type of objective, and of one pair of sides."""

from __future__ import annotations

from dataclasses import dataclass, field

from .batch_numbers import BatchNumbers
from .events import OpenFindings
from .step_history import StepHistory


@dataclass
class BatchKind:
    """A loop that takes turns between data sets or losses has a curve for each of them."""

    history: StepHistory = field(default_factory=StepHistory)
    numbers: BatchNumbers = field(default_factory=BatchNumbers)
    open: OpenFindings = field(default_factory=OpenFindings)
    steps: int = 0  # watched ones of this kind
    newest: int = 0  # the newest of them, counted among the watched steps of all kinds

    def begin_curve(self) -> None:
        """Forget past steps: the loss is another one from here on."""
        self.history, self.steps = StepHistory(), 1
