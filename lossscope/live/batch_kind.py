"""Keep a curve for each kind of batch: a type of objective and a pair of sides; a loop may take turns."""

from __future__ import annotations

from dataclasses import dataclass, field

from lossscope.objectives.base import Objective

from .batch_numbers import BatchNumbers
from .doctor_options import AT_ONCE, AT_START, OF_COLLAPSE
from .events import OpenFindings
from .schedule import LOOKS, Schedule, Start
from .step_history import StepHistory

CONFIRMED = (
    4  # looks in a row, at neighbouring steps, that must find a collapse before it begins, or miss it before it ends
)


@dataclass(frozen=True)
class NewestStep:
    """Facts of the newest step, without its batch."""

    number: int
    objective: Objective | None  # of the watch; None: only the value of the loss is known
    size: int  # queries of its batch
    is_trained: bool  # whether the objective is known to be the trained loss


@dataclass
class BatchKind:
    """The history of a kind of batch, and its open findings."""

    history: StepHistory = field(default_factory=StepHistory)
    numbers: BatchNumbers = field(default_factory=BatchNumbers)
    open: OpenFindings = field(default_factory=OpenFindings)
    steps: int = 0  # watched steps of this kind
    began: int = 1  # its first step, counted among the watched steps of all kinds
    newest: int = 0  # its newest step, counted likewise
    newest_step: NewestStep = NewestStep(0, None, 0, False)
    due: int = 0  # steps of this kind before the next examination
    start: Start = "unknown"  # what the first step shows of the model
    was_apart: bool = False  # whether the model ever told items apart
    suspected: int = 0  # looks in a row that found a collapse
    recovered: int = 0  # looks in a row that did not

    def begin_curve(self) -> None:
        """Forget past steps: another loss begins here."""
        self.history, self.steps, self.due = StepHistory(), 1, 0

    def begin_training(self) -> None:
        """Forget past steps and the start: another training begins; open findings stay."""
        self.begin_curve()
        self.steps, self.newest = 0, 0
        self.start, self.was_apart, self.suspected, self.recovered = "unknown", False, 0, 0

    def ids(self, schedule: Schedule, is_start: bool, is_last: bool) -> frozenset[str]:
        """Return the ids to check on the newest step; none between examinations.

        Args:
            schedule: of this kind.
            is_start: whether a training begins with this step and is not resumed.
            is_last: whether this is the last step of the training.
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
