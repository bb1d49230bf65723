"""Which softmax is it: its temperature, its directions, the mean or the sum over queries, and what does guessing cost?

A run whose loss stays at the cost of equal similarities has learnt nothing: log B of a softmax over the B candidates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from lossscope.engine.loss_levels import Layout, loss_levels
from lossscope.objectives.base import Objective
from lossscope.objectives.checks.softmax_form import EQUAL, NONE
from lossscope.objectives.checks.verdict import Verdict
from lossscope.registry import build

from ..case import Case, verdict
from ..softmax import Softmax

PLACE = 55
AFTER = ("step", "normalised-over-wrong-axis", "positives")
_SAME = 1e-4  # relative difference up to which two costs are equal; a step may compute in float32


def examine(case: Case) -> Iterator[Verdict]:
    """Look at the softmax that was fitted to the weights, and at the value where all similarities are equal."""
    size, equal = case.trial.size, case.alone.get(EQUAL)
    cost = math.nan if equal is None else equal.value
    if not case.has(Softmax):
        yield _judge_level(cost, size)
        return
    fit = case.part(Softmax).fit
    both = abs(fit.columns) > 1e-6 * abs(fit.rows)
    directions = "queries and candidates" if both else "queries"
    if fit.copies is None:
        text = f"negatives are weighed by a softmax of {directions} at temperature {fit.tau:.4g}, positives otherwise"
        yield verdict("scale", "note", text, tau=fit.tau)
        return
    numbers = {"tau": fit.tau, "rows": fit.rows, "columns": fit.columns if both else 0.0}
    total = numbers["rows"] + numbers["columns"]
    kinds = {1.0: "their mean", float(size): "their sum", 0.5 * size: "half their sum", 2.0: "twice their mean"}
    kind = next((words for value, words in kinds.items() if abs(total * size - value) < 1e-4 * value), None)
    weight = kind or f"{total * size:.4g} times their mean"
    text = f"a softmax of {directions} at temperature {fit.tau:.4g}, {weight}"
    if cost == cost:
        numbers["guess"] = cost / (total * size)
        name = "dcl" if bool((fit.copies < 0.5).all()) else "ntxent"
        text += f"; equal similarities cost {_describe_level(numbers['guess'], name, size)}"
    yield verdict("scale", "pass", text, **numbers)


def _judge_level(cost: float, size: int) -> Verdict:
    """Say which layout of candidates costs as much where all similarities are equal, of a loss that was not fitted."""
    for layout in (Layout(size), Layout(size, views=True)):
        if math.isclose(_guess("ntxent", layout), cost, rel_tol=_SAME):
            return verdict("scale", "pass", f"equal similarities cost {cost:.4g}, {layout.name}", guess=cost)
    return verdict("scale", "skipped", NONE)


def _describe_level(cost: float, name: str, size: int) -> str:
    """Return what a query costs where all similarities are equal, beside what the objective says."""
    guess = _guess(name, Layout(size))
    if math.isclose(guess, cost, rel_tol=_SAME):
        return f"{cost:.4g}, as of {name}"
    number = math.exp(cost)
    logarithm = f" (log {number:.0f})" if math.isclose(number, round(number), rel_tol=_SAME) else ""
    return f"{cost:.4g}{logarithm} a query, where {name} has {guess:.4g}"


def _guess(name: str, layout: Layout) -> float:
    """Return what an objective costs in a layout where all similarities are equal."""
    objective: Objective = build("objectives", name)
    levels = loss_levels(objective, layout)
    return math.nan if levels is None else levels.guess
