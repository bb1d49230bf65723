"""What becomes of a candidate that is twice in a batch: is its copy pushed away from the query it belongs to?

Batches of real data have copies; a loss that does not know of them pulls and pushes the same vector, and cannot fall
below log(1 + m) with m copies. Source: sentence-transformers issue 3189.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from lossscope.objectives.checks.verdict import Verdict

from ..case import Case, verdict
from ..pulls import read_pulls
from ..softmax import Softmax
from ..softmax_fit import pushed_elsewhere

PLACE = 60
AFTER = ("step", "normalised-over-wrong-axis", "positives")


def examine(case: Case) -> Iterator[Verdict]:
    """Look at the first query when the second candidate is a copy of its positive."""
    name, result = "duplicates", case.alone.get("copy")
    if not case.has(Softmax) or result is None or not case.is_readable:
        yield verdict(name, "skipped", "the loss is no softmax over candidates, or did not run on copies")
        return
    fit, trial = case.part(Softmax).fit, case.trial.embeddings().with_copy()
    S = trial.queries @ trial.candidates.T
    e = ((S - S.max()) / fit.tau).exp()
    pulls = read_pulls(result.queries, trial, case.alone.precision)
    rest = torch.arange(case.trial.size) > 1
    by_column = fit.columns / fit.tau * (e / e.sum(0))[0]
    A = float(((pulls.candidates[0] - by_column)[rest] / e[0][rest]).median())
    Z = fit.rows / fit.tau / A if A > 0 else float("nan")
    usual = 1.0 if fit.copies is None else float(fit.copies[0])
    elsewhere = float(pushed_elsewhere(pulls)[0]) / A
    more = (Z - elsewhere - float(e[0][rest].sum())) / float(e[0, 0]) - usual
    if abs(more - 1) < 0.1:
        yield verdict(name, "note", "a copy of the positive is pushed away as a negative: keep copies out of batches")
    elif abs(more) < 0.1:
        yield verdict(name, "pass", "a copy of the positive is no negative")
    else:
        yield verdict(name, "skipped", "the loss is another one on copies")
