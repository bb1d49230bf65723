"""When what is looked for: from the number of steps of a training, or from those that were seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .doctor_options import (
    AT_ONCE,
    OF_BATCH,
    OF_GEOMETRY,
    OF_LEARNING,
    OF_LOG,
    OF_TEMPERATURE,
    DoctorOptions,
)

LOOKS = frozenset({10, 20, 50})  # steps before the first examination on which collapse is looked for
_FEWEST = (
    20  # steps of batches of at most 128 tell a recall of 2.4 times that of guessing from it, see `learning_state`
)
_BY = 200  # steps in which a model that was never trained begins to learn


Start = Literal["apart", "spread", "unknown"]
"""Of the first step: items were told apart, as by a model that is fine-tuned; their embeddings at least differed, as of
one whose pairs may be wrong; or neither, as of a model that was never trained, which may begin to learn late."""


@dataclass(frozen=True)
class Schedule:
    """Steps of the examinations of one kind of batches, in watched steps of that kind."""

    every: int
    first: int
    learning_by: int
    settled: int
    learnt: int  # steps before the geometry is looked at

    @classmethod
    def of(cls, options: DoctorOptions, steps: int | None, start: Start = "unknown") -> Schedule:
        """Return the schedule of a training.

        In a short one the log is looked at after an eighth, learning after half and temperatures after three quarters
        of the steps. One of fewer than 40 steps is too short to say that it does not learn.

        Args:
            options: of the user, which win.
            steps: of the training; None: they are not known.
            start: of the model; what was never trained has 200 steps to begin to learn, however short the training.
        """
        known = steps or 1 << 62
        half = min(_BY, known // 2) if start != "unknown" and known >= 2 * _FEWEST else _BY
        settled = options.settled or min(1000, max(_FEWEST, 3 * known // 4))
        return cls(
            options.every or min(50, max(2, known // 8)),
            options.first or min(100, max(5, known // 8)),
            options.learning_by or half,
            settled,
            options.settled or (settled if start == "apart" else max(settled, _BY)),
        )

    @property
    def window(self) -> int:
        """Newest steps that say whether a model learns."""
        return max(self.first, 2 * self.every, min(self.learning_by, 100))

    @property
    def median(self) -> int:
        """Steps whose losses are compared as one median; 5 are the fewest that the doctor smooths by."""
        return max(self.every, 5)

    def ids(self, steps: int) -> frozenset[str]:
        """Return which findings an examination looks for after so many watched steps."""
        ids = AT_ONCE | OF_BATCH | OF_LOG
        ids |= OF_LEARNING if steps >= self.learning_by else frozenset()
        ids |= OF_TEMPERATURE if steps >= self.settled else frozenset()
        return ids | (OF_GEOMETRY if steps >= self.learnt else frozenset())
