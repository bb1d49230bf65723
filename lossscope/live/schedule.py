"""When does the doctor check which finding? It follows from the number of steps of the training."""

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

LOOKS = frozenset({10, 20, 50})  # steps before the first examination that check for a collapse
_FEWEST = 20  # steps that separate a recall of 2.4 times guessing from guessing, see `learning_state`
_BY = 200  # steps in which an untrained model begins to learn


Start = Literal["apart", "spread", "unknown"]
"""The model at the first step: `apart` told items apart, as in fine-tuning; `spread` had different embeddings, as with
wrong pairs; `unknown` is anything else, such as an untrained model, which may begin to learn late."""


@dataclass(frozen=True)
class Schedule:
    """Steps of the examinations of one kind of batches, in watched steps of that kind."""

    every: int
    first: int
    learning_by: int
    settled: int
    learnt: int  # steps before checks of the geometry

    @classmethod
    def of(cls, options: DoctorOptions, steps: int | None, start: Start = "unknown") -> Schedule:
        """Return the schedule of a training.

        A short training is checked after an eighth of its steps for findings of the log, after half for learning, and
        after three quarters for temperatures. Fewer than 40 steps cannot show that a model does not learn.

        Args:
            options: of the user, which win.
            steps: of the training; None: unknown.
            start: of the model; an untrained model has 200 steps to begin to learn, however short the training.
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
        """Number of newest steps that show whether a model learns."""
        return max(self.first, 2 * self.every, min(self.learning_by, 100))

    @property
    def median(self) -> int:
        """Number of steps in a median of losses; the doctor smooths over at least 5."""
        return max(self.every, 5)

    def ids(self, steps: int) -> frozenset[str]:
        """Return the findings that an examination checks after `steps` watched steps."""
        ids = AT_ONCE | OF_BATCH | OF_LOG
        ids |= OF_LEARNING if steps >= self.learning_by else frozenset()
        ids |= OF_TEMPERATURE if steps >= self.settled else frozenset()
        return ids | (OF_GEOMETRY if steps >= self.learnt else frozenset())
