"""Do added candidates that are not valid, and added easy queries, leave the weights of the others as they are?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from .independence import largest_change
from .tolerances import tolerances_of
from .trial_batches import SIZE, add_candidates, add_easy_queries, opposite_batch, random_batch
from .verdict import Verdict, judge


def check_padding(objective: Any, seed: int) -> Iterator[Verdict]:
    """Candidates that are not valid must change nothing, however many there are."""
    if objective.traits.square:
        yield Verdict("padding", "skipped", "it takes whole batches only, in which every entry is valid")
        return
    batch = random_batch(objective, seed)
    before, after = batch.evaluate(objective), add_candidates(batch, 3, 0.99).evaluate(objective)
    change, what = float(largest_change(before.W, after.W[:, :SIZE]).max()), "W"
    if before.values is not None and after.values is not None:
        of_values = float(largest_change(before.values[:, None], after.values[:, None]).max())
        change, what = max(change, of_values), "W and values"
    evidence = f"3 more candidates that are not valid change {what} by {change:.2g} of the largest"
    same = tolerances_of(objective).same
    yield judge("padding", [] if change <= same else [f"{evidence}; mask them with mask.valid"], evidence)


def check_scale(objective: Any, seed: int) -> Iterator[Verdict]:
    """W must be that of the SUM of the query losses: other, easy queries must not shrink it."""
    ratios = [_ratio(objective, seed, times) for times in (1, 3)]
    others = "far-away pairs" if objective.traits.square else "easy queries"
    evidence = f"with {SIZE} {others} more W of the first {SIZE} is {ratios[0]:.3g} times what it was, with {3 * SIZE} "
    evidence += f"more {ratios[1]:.3g} times"
    bound = 0.2 if objective.coupled else 1e-6
    if all(abs(ratio * (1 + times) - 1) <= 0.2 for ratio, times in zip(ratios, (1, 3), strict=True)):
        advice = (
            "W must be dl/dS of each query's own loss l: do not divide it by the number of queries, and state in "
            'the class that training averages: reduction = "mean"'
        )
        yield Verdict("scale", "fail", f"it averages over the queries: {evidence}; {advice}")
    elif any(not abs(ratio - 1) <= bound for ratio in ratios):
        why = ", as the rows of a coupled loss may depend on those added" if objective.coupled else ""
        yield Verdict("scale", "note", f"neither a sum over the queries nor their mean{why}: {evidence}")
    elif objective.traits.square:
        yield Verdict("scale", "note", _describe_reduction(objective, seed, evidence))
    else:
        yield Verdict("scale", "pass", f"W is that of a sum over the queries: {evidence}")


def _ratio(objective: Any, seed: int, times: int) -> float:
    """Return the median ratio of W with `times` as many easy queries added to W without, where W is not small."""
    if objective.traits.square:
        batch, longer = opposite_batch(SIZE, 0, seed), opposite_batch(SIZE, SIZE * times, seed)
    else:
        batch = random_batch(objective, seed)
        longer = add_easy_queries(batch, SIZE * times)
    before, after = batch.evaluate(objective).W, longer.evaluate(objective).W[:SIZE, :SIZE]
    large = before.abs() > 1e-2 * before.abs().max()
    return float((after[large] / before[large]).median())


def _describe_reduction(objective: Any, seed: int, evidence: str) -> str:
    """Describe whether a loss of whole batches averages or sums, by its gradient on the first pairs."""
    norms = []
    for far in (0, SIZE):
        info = opposite_batch(SIZE, far, seed).mask.info
        images = info["queries"].clone().requires_grad_()
        (gradient,) = torch.autograd.grad(objective.loss(images, info["candidates"]), images)
        norms.append(float(gradient[:SIZE].norm()))
    ratio = norms[1] / max(norms[0], 1e-300)
    kind = "averages over the batch" if abs(ratio - 0.5) < 0.1 else "sums over the batch"
    if not (abs(ratio - 0.5) < 0.1 or abs(ratio - 1) < 0.2):
        kind = "neither sums over the batch nor averages over it"
    shrinkage = f"with {SIZE} more far-away pairs, its gradient on the first {SIZE} is {ratio:.3g} times what it was"
    return f"the loss {kind}: {shrinkage}. W is given as that of a sum: {evidence}"
