"""With mined negatives, is any query drawn to one of them, or to another candidate than its own?

Where each process sends positives and mined negatives in one block, gathered blocks stand side by side, P N P N, and
labels for P P N N point at negatives. Source: sentence-transformers PR 3453.
"""

from __future__ import annotations

from collections.abc import Iterator

from lossscope.objectives.checks.verdict import Verdict

from ..case import Case, rows, verdict
from ..mined import Mined
from ..pulls import SOFT, Pulls
from ..together import Together

PLACE = 120
AFTER = ("step", "normalised-over-wrong-axis", "positives", "processes", "labels-without-offset")


def examine(case: Case) -> Iterator[Verdict]:
    """Look at what each query pulls with mined negatives, on one process and on several."""
    name, alone = "mined-negative-as-positive", case.part(Mined).pulls
    case.require_readable()
    result = case.part(Together).runs.get("mined") if case.has(Together) else None
    wrong = _describe(alone)
    if wrong:
        yield verdict(
            name, "fail", f"{wrong} on one process, none without mined negatives: look at the order of columns"
        )
        return
    if result is None:
        yield verdict(name, "pass", "with mined negatives, queries pull their own candidate alone")
        return
    wrong = _describe(case.read(result, mined=True))
    if wrong:
        text = f"{wrong} on {case.trial.processes} processes, none without mined negatives or on one process"
        yield verdict(name, "fail", f"{text}: look at the order of the gather")
        return
    yield verdict(name, "pass", "with mined negatives, queries of all processes pull their own candidate alone")


def _describe(pulls: Pulls) -> str:
    """`3 of 8 queries pull a mined negative`; empty where none is drawn to anything but its own candidate."""
    assert pulls.negatives is not None, "pulls must be of a call with mined negatives"
    pull = (-pulls.negatives).flatten(1).amax(1)
    drawn = (pull > pulls.smallest) & (pull >= SOFT * pulls.own)
    if bool(drawn.any()):
        return f"{rows(drawn)} pull a mined negative"
    return f"{rows(pulls.strayed)} pull another candidate" if bool(pulls.strayed.any()) else ""
