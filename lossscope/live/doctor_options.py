"""When the findings of a running loop are looked for."""

from __future__ import annotations

from dataclasses import dataclass

from lossscope.errors import InputError

AT_ONCE = frozenset({"non-finite", "normalised-over-wrong-axis", "temperature-twice"})
"""Facts of one batch: they begin when they are found once, and are looked for on the first step, too."""
OF_SCALE = frozenset({"normalised-over-wrong-axis", "temperature-twice"})
"""Similarities are others than the objective means: while they are, its loss and what is learnt are not judged."""
AT_START = frozenset({"siglip-start"})
"""Facts of the start, which are looked for on the first step of a training alone, and not where one is resumed."""
OF_BATCH = frozenset({"not-normalised", "positive-as-negative"})
"""Facts of a batch that may be those of an odd one."""
OF_LOG = frozenset({"diverged", "frozen", "loss-spike", "overfitting", "scale-falling"})
"""Of the numbers of past steps."""
OF_RISE = frozenset({"diverged"})
"""Of a loss that has risen by more than its noise."""
OF_NEWEST = frozenset({"loss-spike"})
"""Of the first and the newest steps, so that it ends."""
OF_LEARNING = frozenset({"complete-collapse", "dead-tower", "margin-plateau", "misaligned-pairs", "no-learning"})
"""Positives are found as by guessing: not looked for while loss or recall get better, or the learning rate warms up."""
OF_STATE = frozenset(
    {
        "dimensional-collapse",
        "hard-negatives-too-hard",
        "no-gradient",
        "one-direction",
        "temperature-too-high",
        "temperature-too-low",
    }
)
"""Of a model that has learnt for a while."""


@dataclass(frozen=True)
class DoctorOptions:
    """When a running loop is examined, in watched steps. Raises InputError for numbers below 1."""

    every: int = 50  # steps from one examination to the next
    first: int = 100  # steps before the first one of the log
    learning_by: int = 200  # steps before a model that guesses is one that does not learn
    settled: int = 1000  # steps before geometry, temperature and directions are looked at

    def __post_init__(self) -> None:
        for name in ("every", "first", "learning_by", "settled"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InputError(f"{name} of DoctorOptions must be a whole number of at least 1; got {value!r}")

    def ids(self, steps: int) -> frozenset[str]:
        """Return which findings are looked for after so many watched steps; none between examinations."""
        if steps == 1:
            return AT_ONCE | AT_START
        if steps < self.first or (steps - self.first) % self.every:
            return frozenset()
        chosen = AT_ONCE | OF_BATCH | OF_LOG
        chosen |= OF_LEARNING if steps >= self.learning_by else frozenset()
        return chosen | (OF_STATE if steps >= self.settled else frozenset())

    @property
    def window(self) -> int:
        """Newest steps that say whether a model learns."""
        return max(self.first, 2 * self.every)
