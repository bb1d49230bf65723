"""Is the step the objective that its trainer believes it to be?

The gradient of embeddings is compared with that of the objective on cosines, in one direction and in both. A factor is
no error of the objective, but that of a learning rate.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from lossscope.core.similarity import both_masks, cosine, normalise, pair_mask
from lossscope.core.weights import backward, reduction_scale
from lossscope.objectives.base import Objective
from lossscope.objectives.checks.verdict import Verdict
from lossscope.registry import spec_of

from ..case import Case, verdict
from ..ratio import Ratio, ratio

PLACE = 150
AFTER = ("step",)
SAME = 1e-6


def examine(case: Case, objective: Objective | None = None) -> Iterator[Verdict]:
    """Compare the first call with the objective, where one is given."""
    name = "objective"
    if objective is None:
        yield verdict(name, "skipped", "no SPEC was given to compare with")
        return
    spec = spec_of(objective)
    half = objective.traits.directions
    directions = {"both directions": (half, half), "queries alone": (1.0, 0.0), "candidates alone": (0.0, 1.0)}
    compared = {words: _compare(case, objective, shares) for words, shares in directions.items()}
    words, best = max(compared.items(), key=lambda item: item[1].cosine)
    numbers = {"cosine": best.cosine, "length": best.length}
    if best.cosine > 1 - max(SAME, 10 * case.alone.precision):
        factor = "" if abs(best.length - 1) < 1e-4 else f", {best.length:.4g} times as long"
        yield verdict(name, "pass", f"the gradient is that of {spec}, {words}{factor}", **numbers)
    else:
        text = f"the gradient must be that of {spec}; it has a cosine of {best.cosine:.4g} to it, {words}"
        yield verdict(name, "fail", text, **numbers)


def _compare(case: Case, objective: Objective, shares: tuple[float, float]) -> Ratio:
    """Compare the gradients of embeddings with those of the objective, each direction with its share."""
    trial, plain = case.trial.embeddings(), case.plain()
    sides = [x.clone().requires_grad_() for x in (trial.queries, trial.candidates)]
    S = cosine(*(normalise(x) for x in sides))
    gradient = torch.zeros_like(S)
    for share, masks, dim in zip(shares, both_masks(pair_mask(torch.arange(len(S)))), (0, 1), strict=True):
        if share:
            detached = S.detach() if dim == 0 else S.detach().T.contiguous()
            weights = objective(detached, masks)
            W = weights.W * (share * reduction_scale(weights, objective.traits.reduction, len(S)))
            gradient += W if dim == 0 else W.T
    backward(S, gradient)
    stated = [
        along_the_sphere(x, g)
        for x, g in zip((trial.queries, trial.candidates), (plain.queries, plain.candidates), strict=True)
    ]
    expected = [torch.zeros_like(x) if x.grad is None else x.grad for x in sides]
    return ratio("embeddings", torch.cat(stated), torch.cat(expected))


def along_the_sphere(x: Tensor, gradient: Tensor) -> Tensor:
    """Return the part of a gradient along the sphere, which is all of it where the step normalises."""
    return gradient - (gradient * x).sum(1, keepdim=True) * x
