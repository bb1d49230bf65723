"""Is the gradient on N processes that of one with the whole batch, or is part of it lost in the gather?

torch.distributed.all_gather returns constants. Then what the other processes' losses say of an embedding is lost: its
gradient is 1/N of the right one where every process computes the whole loss, and points elsewhere where each computes
its own rows. Source: SLIP issue 31, open_clip issue 616, lightly issues 1528 and 1977, DeCLUTR PR 212.
"""

from __future__ import annotations

from collections.abc import Iterator

from lossscope.objectives.checks.verdict import Verdict

from ..case import Case, verdict
from ..pulls import Pulls
from ..ratio import STRAIGHT, Ratio, ratio, ratios
from ..together import Together

PLACE = 130
AFTER = ("step", "normalised-over-wrong-axis", "processes", "labels-without-offset", "cached-gradient-differs")


def examine(case: Case) -> Iterator[Verdict]:
    """Compare the gradients of queries and candidates with those expected."""
    name, trial = "gather-without-gradient", case.trial
    together = case.part(Together)
    if not bool(case.plain().queries.any()):
        yield verdict(name, "skipped", "no query has a gradient on one process: nothing to compare")
        return
    if not any(bool(x.any()) for x in together.runs.results["plain"].tensors.values()):
        text = f"on {trial.processes} processes nothing has a gradient, though it has one on one process"
        yield verdict(name, "fail", text, **{"queries.length": 0.0, "candidates.length": 0.0})
        return
    all_ratios = of_processes(together)
    sides = [found for found in all_ratios if found.of in ("queries", "candidates")]
    numbers = {f"{found.of}.{key}": getattr(found, key) for found in all_ratios for key in ("length", "cosine")}
    each = _of_candidates(together)
    numbers |= {f"candidate {row}.length": found.length for row, found in enumerate(each)}
    listed = ", ".join(str(found) for found in all_ratios)
    turned = [found for found in sides if found.cosine < 1 - max(STRAIGHT, 10 * case.alone.precision)]
    short = [found for found in sides if found.length < 1 - max(STRAIGHT, 10 * case.alone.precision)]
    of_one = "that of one process with the whole batch" if together.shares_candidates else "that of its shares"
    if case.is_readable and not together.keeps_gradients:
        yield verdict(name, "fail", f"{_unreached(together)}; {listed} of one process", **numbers)
    elif together.is_another_loss:
        text = (
            f"on {trial.processes} processes it is another loss than on one with the whole batch{_negatives(together)}"
        )
        yield verdict(name, "note", f"{text}; no gradient of it is lost", **numbers)
    elif turned:
        text = f"on {trial.processes} processes the gradient is {listed} {of_one}"
        yield verdict(name, "fail", f"{text}{_worst(each)}: part of it is lost; gather with gradients", **numbers)
    elif short and not _states_a_share(together):
        advice = "" if not trial.mean else "; where the trainer adds gradients up, say --gradients sum"
        text = f"on {trial.processes} processes the gradient is {listed} {of_one}"
        yield verdict(name, "fail", f"{text}: gather with gradients, or multiply the loss{advice}", **numbers)
    else:
        off = max(found.distance for found in sides)
        other = max(abs(found.length - 1) for found in sides) > max(STRAIGHT, 10 * case.alone.precision)
        same = "points where it must" if other else f"is {of_one}, off by {off:.1g}"
        yield verdict(name, "pass", f"the gradient on {trial.processes} processes {same}", **numbers)


def of_processes(together: Together) -> list[Ratio]:
    """Return the gradients on several processes against those expected."""
    return ratios(together.runs.results["plain"].tensors, together.expected())


def _unreached(together: Together) -> str:
    """Say how far the weights that reach candidates are from those that reach queries, where both must be dL/dS."""
    reaching, processes = together.reaching, together.case.trial.processes
    if reaching.length == 0 and reaching.cosine == 0:
        text = f"on {processes} processes candidates have no gradient, though queries are compared with them"
    else:
        off = f"{100 * reaching.distance:.2g} % off those in the queries'"
        text = f"on {processes} processes the weights in the candidates' gradient are {off}, and both must be dL/dS"
    return f"{text}: what was gathered is constant, gather with gradients"


def _negatives(together: Together) -> str:
    """Say how many negatives a query has on one process and on several, where that can be read."""
    if not together.case.is_readable:
        return ""
    return f": a query pushes {_pushed(together.pulls)}, on one process {_pushed(together.case.pulls)}"


def _pushed(pulls: Pulls) -> str:
    """`7 candidates and 3 queries`, on average."""
    numbers = [float(which.sum(1).double().mean()) for which in (pulls.pushed, pulls.pushed_queries)]
    return f"{numbers[0]:.3g} candidates and {numbers[1]:.3g} queries"


def _states_a_share(together: Together) -> bool:
    """Whether the values of the processes add up to the loss: then its scale is short, and no gradient is lost."""
    value, expected = together.runs.results["plain"].value, together.expected_value
    return abs(value * together.case.trial.processes - expected) <= 1e-6 * abs(expected)


def _of_candidates(together: Together) -> list[Ratio]:
    """Return the gradient of each candidate against the one expected."""
    got, expected = together.runs.results["plain"].candidates, together.expected()["candidates"]
    return [ratio(f"candidate {row}", got[row], expected[row]) for row in range(len(got))]


def _worst(each: list[Ratio]) -> str:
    """Name the candidate whose gradient is the most wrong."""
    worst = max(each, key=lambda found: found.distance)
    return f"; of one candidate {worst}" if worst.distance > STRAIGHT else ""
