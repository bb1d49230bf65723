"""Is the gradient on N processes that of one with the whole batch, or is part of it lost in the gather?

torch.distributed.all_gather returns constants. Then what the other processes' losses say of an embedding is lost: its
gradient is 1/N of the right one where every process computes the whole loss, and points elsewhere where each computes
its own rows. Source: SLIP issue 31, open_clip issue 616, lightly issues 1528 and 1977, DeCLUTR PR 212.
"""

from __future__ import annotations

from collections.abc import Iterator

from lossscope.objectives.checks.verdict import Verdict

from ..case import Case, Ratio, ratio, ratios, verdict

PLACE = 130
AFTER = ("step", "normalised-over-wrong-axis", "processes", "labels-without-offset", "cached-gradient-differs")
STRAIGHT = 1e-6  # 1 − cosine of gradients of one direction


def examine(case: Case) -> Iterator[Verdict]:
    """Compare the gradients of queries and candidates with those expected."""
    name, trial = "gather-without-gradient", case.trial
    if case.together is None:
        yield verdict(name, "skipped", "one process was requested: nothing to compare")
        return
    if not bool(case.plain().queries.any()):
        yield verdict(name, "skipped", "no query has a gradient on one process: nothing to compare")
        return
    assert case.together is not None
    if not any(bool(x.any()) for x in case.together.results["plain"].tensors.values()):
        text = f"on {trial.processes} processes nothing has a gradient, though it has one on one process"
        yield verdict(name, "fail", text, **{"queries.length": 0.0, "candidates.length": 0.0})
        return
    every = of_processes(case)
    sides = [one for one in every if one.of in ("queries", "candidates")]
    numbers = {f"{one.of}.{key}": getattr(one, key) for one in every for key in ("length", "cosine")}
    each = _of_candidates(case)
    numbers |= {f"candidate {row}.length": one.length for row, one in enumerate(each)}
    said = ", ".join(str(one) for one in every)
    turned = [one for one in sides if one.cosine < 1 - max(STRAIGHT, 10 * case.alone.precision)]
    short = [one for one in sides if one.length < 1 - max(STRAIGHT, 10 * case.alone.precision)]
    of_one = "that of one process with the whole batch" if case.shares_candidates else "that of its shares"
    if turned:
        text = f"on {trial.processes} processes the gradient is {said} {of_one}"
        yield verdict(name, "fail", f"{text}{_worst(each)}{_lost(case)}", **numbers)
    elif short and not _states_a_share(case):
        advice = "" if not trial.mean else "; where the trainer adds gradients up, say --gradients sum"
        text = f"on {trial.processes} processes the gradient is {said} {of_one}"
        yield verdict(name, "fail", f"{text}: gather with gradients, or multiply the loss{advice}", **numbers)
    else:
        off = max(one.distance for one in sides)
        other = max(abs(one.length - 1) for one in sides) > max(STRAIGHT, 10 * case.alone.precision)
        same = "points where it must" if other else f"is {of_one}, off by {off:.1g}"
        yield verdict(name, "pass", f"the gradient on {trial.processes} processes {same}", **numbers)


def of_processes(case: Case) -> list[Ratio]:
    """Return the gradients on several processes against those expected."""
    assert case.together is not None, "several processes must have been requested"
    return ratios(case.together.results["plain"].tensors, case.expected())


def _states_a_share(case: Case) -> bool:
    """Whether the values of the processes add up to the loss: then its scale is short, and no gradient is lost."""
    assert case.together is not None
    value, expected = case.together.results["plain"].value, case.expected_value
    return abs(value * case.trial.processes - expected) <= 1e-6 * abs(expected)


def _of_candidates(case: Case) -> list[Ratio]:
    """Return the gradient of each candidate against the one expected."""
    assert case.together is not None
    got, expected = case.together.results["plain"].candidates, case.expected()["candidates"]
    return [ratio(f"candidate {row}", got[row], expected[row]) for row in range(len(got))]


def _worst(each: list[Ratio]) -> str:
    """Name the candidate whose gradient is the most wrong."""
    worst = max(each, key=lambda one: one.distance)
    return f"; of one candidate {worst}" if worst.distance > STRAIGHT else ""


def _lost(case: Case) -> str:
    """Say what is missing, where that can be read."""
    if not case.is_readable or not case.shares_candidates:
        return ""
    return ": what the losses of the other processes say of an embedding does not reach it; gather with gradients"
