"""On many processes, is any query drawn to a mined negative?

Where each process sends positives and mined negatives in one block, gathered blocks stand side by side, P N P N, and
labels for P P N N point at negatives. Source: sentence-transformers PR 3453.
"""

from __future__ import annotations

from collections.abc import Iterator

from lossscope.objectives.checks.verdict import Verdict

from ..case import Case, rows, verdict
from ..pulls import SOFT, read_pulls

PLACE = 120
AFTER = ("step", "normalised-over-wrong-axis", "positives", "processes", "labels-without-offset")


def examine(case: Case) -> Iterator[Verdict]:
    """Look at what each query pulls on several processes, with mined negatives."""
    name = "mined-negative-as-positive"
    result = None if case.together is None else case.together.get("mined")
    if result is None or not case.is_readable:
        yield verdict(name, "skipped", "needs several processes, a step that takes negatives, and readable weights")
        return
    pulls = read_pulls(result.queries, case.trial.embeddings(mined=True), case.alone.precision)
    assert pulls.negatives is not None
    pull = (-pulls.negatives).flatten(1).amax(1)
    drawn = (pull > pulls.smallest) & (pull >= SOFT * pulls.own)
    bad = drawn | pulls.strayed
    if not bool(bad.any()):
        yield verdict(name, "pass", "with mined negatives, queries of all processes pull their own candidate alone")
        return
    what = f"{rows(drawn)} pull a mined negative" if bool(drawn.any()) else f"{rows(bad)} pull another candidate"
    text = f"{what} on {case.trial.processes} processes, none without mined negatives: look at the order of the gather"
    yield verdict(name, "fail", text, wrong=float(bad.sum()))
