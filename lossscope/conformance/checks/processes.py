"""Does the step run on several processes?"""

from __future__ import annotations

from collections.abc import Iterator

from lossscope.objectives.checks.verdict import Verdict

from ..case import Case, verdict
from ..together import Together

PLACE = 100
AFTER = ("step",)


def examine(case: Case) -> Iterator[Verdict]:
    """Look at how the processes ended, and whether they share candidates."""
    name, number = "processes", case.trial.processes
    if number == 1:
        yield verdict(name, "skipped", "one process was requested: nothing to compare")
        return
    if not case.has(Together):
        yield verdict(name, "fail", f"it must run on {number} processes; {case.missing[Together]}")
        return
    together = case.part(Together)
    per_process = case.trial.size // number
    by = f"{number} processes ({case.trial.backend})"
    if not together.tells_sharing:
        yield verdict(name, "pass", f"it runs on {by}, {per_process} pairs each")
    elif together.shares_candidates:
        yield verdict(name, "pass", f"it runs on {by}; a query meets the candidates of all of them")
    else:
        text = f"on {by} a query meets the {per_process - 1} other candidates of its process alone"
        yield verdict(name, "note", f"{text}: more processes add no negatives")
