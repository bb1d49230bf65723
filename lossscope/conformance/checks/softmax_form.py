"""Is the loss a softmax on every batch, with the log before the mean, or only where no axis can be wrong?

On batches in which all rows and columns of S hold the same numbers a wrong axis changes nothing, nor does the log of a
mean. What the loss is there is compared with what it is on others. Source: CEBRA issue 48.
"""

from __future__ import annotations

from collections.abc import Iterator

from lossscope.objectives.checks.softmax_form import Answer, form_batches, judge_form, read_form
from lossscope.objectives.checks.verdict import Verdict

from ..case import Case, verdict
from ..pulls import read_pulls

PLACE = 52
AFTER = ("step", "normalised-over-wrong-axis", "positives", "positive-as-negative")
_NAME = "softmax-form"


def examine(case: Case) -> Iterator[Verdict]:
    """Read the weights of candidates on these batches."""
    batches, answers = form_batches(case.trial.size, case.trial.seed), {}
    for name, S in batches.items():
        result = case.alone.get(name)
        if result is None or not case.is_readable:
            yield verdict(_NAME, "skipped", "needs a step without mined negatives, and weights that can be read")
            return
        pulls = read_pulls(result.queries, case.trial.embeddings_of(S), case.alone.precision)
        answers[name] = Answer(pulls.candidates, result.value)
    yield judge_form(_NAME, read_form(batches, answers, case.plain().dtype))
