"""The batches of one type of objective and one pair of sides: a loop that takes turns has a curve for each kind."""

from __future__ import annotations

from dataclasses import dataclass, field

from lossscope.objectives.base import Objective

from .batch_numbers import BatchNumbers
from .doctor_options import AT_ONCE, AT_START, OF_COLLAPSE
from .events import OpenFindings
from .schedule import LOOKS, Schedule, Start
from .step_history import StepHistory

CONFIRMED = 4  # looks in a row that find a collapse before it begins, at neighbouring steps, or not before it ends


@dataclass(frozen=True)
class NewestStep:
    """What is known of the newest step without its batch."""

    number: int
    objective: Objective | None  # that it is watched with; None: the loss is known by its value alone
    size: int  # queries of its batch
    is_trained: bool  # whether the objective is known to be what is trained


@dataclass
class BatchKind:
    """What is known of the batches of a kind, and what is open in them."""

    history: StepHistory = field(default_factory=StepHistory)
    numbers: BatchNumbers = field(default_factory=BatchNumbers)
    open: OpenFindings = field(default_factory=OpenFindings)
    steps: int = 0  # watched ones of this kind
    began: int = 1  # its first one, counted among the watched steps of all kinds
    newest: int = 0  # the newest of them, counted likewise
    newest_step: NewestStep = NewestStep(0, None, 0, False)
    due: int = 0  # steps of this kind before the next examination
    start: Start = "unknown"  # what the first step says of the model
    was_apart: bool = False  # whether items were ever told apart
    suspected: int = 0  # looks in a row that found a collapse
    recovered: int = 0  # looks in a row that did not

    def begin_curve(self) -> None:
        """Forget past steps: the loss is another one from here on."""
        self.history, self.steps, self.due = StepHistory(), 1, 0

    def begin_training(self) -> None:
        """Forget past steps and the start: another training begins, with what is open."""
        self.begin_curve()
        self.steps, self.newest = 0, 0
        self.start, self.was_apart, self.suspected, self.recovered = "unknown", False, 0, 0

    def ids(self, schedule: Schedule, is_start: bool, is_last: bool) -> frozenset[str]:
        """Return what is looked for on the newest step; nothing between examinations.

        Args:
            schedule: of this kind.
            is_start: whether a training begins with it, and is not resumed.
            is_last: whether it is the last step of the training.
        """
        if self.steps == 1:
            return AT_ONCE | (AT_START if is_start else frozenset())
        if self.steps >= max(schedule.first, self.due) or is_last:
            self.due = self.steps + schedule.every
            return schedule.ids(self.steps) | (OF_COLLAPSE if self.was_apart else frozenset())
        is_look = self.was_apart and (self.suspected > 0 or self.steps in LOOKS)
        return OF_COLLAPSE if is_look else frozenset()

    def count_look(self, found: bool) -> None:
        """Count a look for a collapse."""
        self.suspected, self.recovered = (self.suspected + 1, 0) if found else (0, self.recovered + 1)
