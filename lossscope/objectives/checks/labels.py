"""Is a loss with labels finite for a query that has no positive, beside others that have one?

A mean over the positives of such a query is 0 / 0, and one NaN in a batch is NaN in every weight of the model. Source:
SupContrast issues 50, 86, 104 and 141.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lossscope.errors import InputError

from .trial_batches import SIZE, random_batch
from .verdict import Verdict, describe_error, judge

_Call = tuple[Tensor, Tensor | None, Tensor, Tensor | None]  # queries, candidates, and the labels of both
NAME = "queries without a positive"
_ADVICE = "leave them out of the loss: n = positives.sum(1), loss[n > 0].mean()"


def check_labels(objective: Any, seed: int) -> Iterator[Verdict]:
    """Value and gradients must be finite where the first query, or every one, has a label that no candidate has."""
    if getattr(objective, "call_form", None) != "labels":
        yield Verdict(NAME, "skipped", "it takes no labels; rows without a positive are among the edge cases")
        return
    info = random_batch(objective, seed).mask.info
    labels = torch.arange(SIZE) // 2
    changed, shifted = labels.clone(), labels + SIZE
    changed[0] = SIZE
    alone = torch.cat([changed[:1], labels[1:] // 2])  # of one set, in which an item is no positive of itself
    queries, candidates = info["queries"], info["candidates"]
    calls: dict[str, _Call] = {
        "one query has no positive": (queries, candidates, changed, labels),
        "no query has a positive": (queries, candidates, shifted, labels),
    }
    if objective.takes_one_set and _problem(objective, queries, None, labels, None) is None:
        calls["one item of a set has no positive"] = (queries, None, alone, None)
    found = {what: problem for what, call in calls.items() if (problem := _problem(objective, *call))}
    if found and all(problem.is_error for problem in found.values()):
        text = "; ".join(f"where {what} it {problem.text}" for what, problem in found.items())
        yield Verdict(NAME, "note", f"{text}. Draw at least two items of each class, or {_ADVICE}")
        return
    problems = [f"{what}: {problem.text}" for what, problem in found.items()]
    if problems:
        problems[-1] += f"; {_ADVICE}"
    yield judge(NAME, problems, f"value and gradients are finite where {', where '.join(calls)}")


class _Problem(NamedTuple):
    """What is wrong of a call, and whether the loss says so itself: an error loses no training."""

    text: str
    is_error: bool = False


def _problem(
    objective: Any, queries: Tensor, candidates: Tensor | None, labels: Tensor, candidate_labels: Tensor | None
) -> _Problem | None:
    """Return what is wrong of a call; None where value and gradients are finite."""
    leaves = [None if x is None else x.clone().requires_grad_() for x in (queries, candidates)]
    try:
        value = objective.loss_with_labels(leaves[0], labels, leaves[1], candidate_labels)
    except InputError as error:
        raised = error.__cause__
        return _Problem(str(error)) if raised is None else _Problem(describe_error(raised), is_error=True)
    given = [x for x in leaves if x is not None]
    gradients = torch.autograd.grad(value.sum(), given, allow_unused=True) if value.requires_grad else ()
    if all(x is None or bool(x.isfinite().all()) for x in gradients):
        return None
    return _Problem("the value is finite and its gradient is not")
