"""What is looked for in a running loop, and what the user says of when."""

from __future__ import annotations

from dataclasses import dataclass, fields

from lossscope.errors import InputError

AT_ONCE = frozenset({"non-finite", "normalised-over-wrong-axis", "temperature-twice"})
"""Facts of one batch: they begin when they are found once, and are looked for on the first step, too."""
OF_SCALE = frozenset({"normalised-over-wrong-axis", "temperature-twice"})
"""Similarities are others than the objective means: while they are, its loss and what is learnt are not judged."""
AT_START = frozenset({"siglip-start"})
"""Facts of the start, which are looked for on the first step of a training alone, and not where one is resumed."""
OF_BATCH = frozenset({"not-normalised", "positive-as-negative"})
"""Facts of a batch that may be those of an odd one."""
OF_LOG = frozenset({"diverged", "frozen", "loss-spike", "overfitting", "scale-falling", "zero-loss"})
"""Of the numbers of past steps."""
OF_RISE = frozenset({"diverged"})
"""Of a loss that has risen by more than its noise."""
OF_NEWEST = frozenset({"loss-spike"})
"""Of the first and the newest steps, so that it ends."""
OF_LEARNING = frozenset({"complete-collapse", "dead-tower", "margin-plateau", "misaligned-pairs", "no-learning"})
"""Positives are found as by guessing: not looked for while loss or recall get better, or the learning rate warms up."""
OF_COLLAPSE = frozenset({"complete-collapse", "dead-tower"})
"""Of these, what a model that has told its items apart does not do while it learns: looked for from there on."""
OF_PAIRS = frozenset({"misaligned-pairs"})
"""Of these, what has a proof of its own: looked for also while the loss falls, from above that of guessing to it."""
OF_TEMPERATURE = frozenset({"temperature-too-high", "temperature-too-low"})
"""Of the weights of a batch, late in a training."""
OF_GEOMETRY = frozenset({"dimensional-collapse", "hard-negatives-too-hard", "no-gradient", "one-direction"})
"""Of a model that has learnt for a while."""
LOOKED_FOR = AT_ONCE | AT_START | OF_BATCH | OF_LOG | OF_LEARNING | OF_TEMPERATURE | OF_GEOMETRY
"""All that is looked for in a running loop."""


@dataclass(frozen=True)
class DoctorOptions:
    """When a running loop is examined, in watched steps. Raises InputError for numbers below 1.

    What is not given follows from the number of steps of the training, where that is known: trainers say it.
    """

    every: int | None = None  # steps from one examination to the next; else 50, of a short training fewer
    first: int | None = None  # steps before the first one of the log; else 100, of a short training fewer
    learning_by: int | None = None  # steps before a model that guesses is one that does not learn; else 200, or half
    settled: int | None = None  # steps before geometry, temperature and directions are looked at; else 1,000, or ¾
    max_steps: int | None = None  # steps of the whole training, watched or not; None: the trainer says it, if any

    def __post_init__(self) -> None:
        for name in (field.name for field in fields(self)):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise InputError(f"{name} of DoctorOptions must be a whole number of at least 1; got {value!r}")
