"""Which findings does the doctor check in a running loop, and when?"""

from __future__ import annotations

from dataclasses import dataclass, fields

from lossscope.errors import InputError

AT_ONCE = frozenset({"non-finite", "normalised-over-wrong-axis", "temperature-twice"})
"""Facts of one batch: they begin when found once, and are checked on the first step, too."""
OF_SCALE = frozenset({"normalised-over-wrong-axis", "temperature-twice"})
"""The objective expects other similarities: meanwhile its loss and its learning are not judged."""
AT_START = frozenset({"siglip-start"})
"""Facts of the start: checked only on the first step of a training that is not resumed."""
OF_BATCH = frozenset({"not-normalised", "positive-as-negative"})
"""Facts of a batch, which may be an odd one."""
OF_LOG = frozenset({"diverged", "frozen", "loss-spike", "overfitting", "scale-falling", "zero-loss"})
"""Findings from the numbers of past steps."""
OF_RISE = frozenset({"diverged"})
"""Findings of a loss that has risen by more than its noise."""
OF_NEWEST = frozenset({"loss-spike"})
"""Findings from the first and the newest steps only, so that they can end."""
OF_LEARNING = frozenset({"complete-collapse", "dead-tower", "margin-plateau", "misaligned-pairs", "no-learning"})
"""Positives rank at chance level: not checked while loss or recall improve, or the learning rate warms up."""
OF_COLLAPSE = frozenset({"complete-collapse", "dead-tower"})
"""Of OF_LEARNING, collapses: checked at all times once the model has told its items apart."""
OF_PAIRS = frozenset({"misaligned-pairs"})
"""Of OF_LEARNING, findings with their own proof: checked also while the loss falls towards that of guessing."""
OF_TEMPERATURE = frozenset({"temperature-too-high", "temperature-too-low"})
"""Findings from the weights of a batch, late in a training."""
OF_GEOMETRY = frozenset({"dimensional-collapse", "hard-negatives-too-hard", "no-gradient", "one-direction"})
"""Findings of a model that has learnt for a while."""
LOOKED_FOR = AT_ONCE | AT_START | OF_BATCH | OF_LOG | OF_LEARNING | OF_TEMPERATURE | OF_GEOMETRY
"""All findings that the doctor checks in a running loop."""


@dataclass(frozen=True)
class DoctorOptions:
    """When a running loop is examined, in watched steps. Raises InputError for numbers below 1.

    Defaults follow from the number of steps of the training, where a trainer tells it.
    """

    every: int | None = None  # steps from one examination to the next; else 50, fewer in a short training
    first: int | None = None  # steps before the first examination of the log; else 100, fewer in a short training
    learning_by: int | None = None  # steps before a guessing model counts as not learning; else 200, or half
    settled: int | None = None  # steps before checks of geometry, temperature and directions; else 1,000, or ¾
    max_steps: int | None = None  # steps of the whole training, watched or not; None: ask the trainer, if any

    def __post_init__(self) -> None:
        for name in (field.name for field in fields(self)):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise InputError(f"{name} of DoctorOptions must be a whole number of at least 1; got {value!r}")
