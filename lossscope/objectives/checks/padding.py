"""What is added to a batch: candidates that take no part, and easy queries, must leave the weights of the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from .independence import SAME, by_row
from .trial_batches import SIZE, opposite, trial, with_candidates, with_easy_rows
from .verdict import Verdict, judged


def padding(objective: Any, seed: int) -> Iterator[Verdict]:
    """Candidates that take no part must change nothing, be there few or many."""
    if objective.square:
        yield Verdict("padding", "skipped", "it takes whole batches only, in which everything takes part")
        return
    batch = trial(objective, seed)
    before, after = batch.weigh(objective), with_candidates(batch, 3, 0.99).weigh(objective)
    moved, what = float(by_row(before.W, after.W[:, :SIZE]).max()), "W"
    if before.values is not None and after.values is not None:
        moved, what = max(moved, float(by_row(before.values[:, None], after.values[:, None]).max())), "W and values"
    told = f"3 more candidates that take no part change {what} by {moved:.2g} of the largest"
    yield judged("padding", [] if moved <= SAME else [f"{told}; mask them with mask.valid"], told)


def scale(objective: Any, seed: int) -> Iterator[Verdict]:
    """W must be that of the SUM of the query losses: other, easy queries must not shrink it."""
    ratios = [_ratio(objective, seed, times) for times in (1, 3)]
    others = "far-away pairs" if objective.square else "easy queries"
    told = f"with {SIZE} {others} more W of the first {SIZE} is {ratios[0]:.3g} times what it was, with {3 * SIZE} "
    told += f"more {ratios[1]:.3g} times"
    bound = 0.2 if objective.coupled else 1e-6
    if all(abs(ratio * (1 + times) - 1) <= 0.2 for ratio, times in zip(ratios, (1, 3), strict=True)):
        advice = "return the loss per query and state reduction='mean'"
        yield Verdict("scale", "fail", f"it averages over the queries: {told}; {advice}")
    elif any(not abs(ratio - 1) <= bound for ratio in ratios):
        why = ", as the rows of a coupled loss may see those added" if objective.coupled else ""
        yield Verdict("scale", "note", f"neither a sum over the queries nor their mean{why}: {told}")
    elif objective.square:
        yield Verdict("scale", "note", _batch_reduction(objective, seed, told))
    else:
        yield Verdict("scale", "pass", f"W is that of a sum over the queries: {told}")


def _ratio(objective: Any, seed: int, times: int) -> float:
    """Median of W with `times` as many easy rows more over W without, where W is not small."""
    if objective.square:
        few, many = opposite(SIZE, 0, seed), opposite(SIZE, SIZE * times, seed)
    else:
        few = trial(objective, seed)
        many = with_easy_rows(few, SIZE * times)
    before, after = few.weigh(objective).W, many.weigh(objective).W[:SIZE, :SIZE]
    some = before.abs() > 1e-2 * before.abs().max()
    return float((after[some] / before[some]).median())


def _batch_reduction(objective: Any, seed: int, told: str) -> str:
    """Whether a loss of whole batches averages or sums, by its gradient on the first pairs."""
    norms = []
    for far in (0, SIZE):
        info = opposite(SIZE, far, seed).mask.info
        images = info["queries"].clone().requires_grad_()
        (gradient,) = torch.autograd.grad(objective.loss(images, info["candidates"]), images)
        norms.append(float(gradient[:SIZE].norm()))
    ratio = norms[1] / max(norms[0], 1e-300)
    kind = "averages over the batch" if abs(ratio - 0.5) < 0.1 else "sums over the batch"
    if not (abs(ratio - 0.5) < 0.1 or abs(ratio - 1) < 0.2):
        kind = "neither sums over the batch nor averages over it"
    shrunk = f"with as many far-away pairs again its gradient on the first ones is {ratio:.3g} times what it was"
    return f"the loss {kind}: {shrunk}. W is given as that of a sum: {told}"
