"""The outer step of an objective that learns its weighting: which weights would have helped a validation batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lossscope.core.batches import Batch, Sampling
from lossscope.core.similarity import Mask
from lossscope.core.weights import both, reduce_weights
from lossscope.objectives.base import Objective
from lossscope.registry import build

from .data_parallel import sums

if TYPE_CHECKING:
    from .state import TrainState
    from .task import Task


def meta_step(task: Task, state: TrainState, objective: Objective, S: Tensor, mask: Mask, batch: Batch) -> None:
    """Update the objective's net φ by the gradient of a validation batch's loss one virtual step ahead.

    θ' = θ − lr ∇θ L(θ; φ), and dL_val(θ')/dφ = −lr Σ u ∘ ∂W(φ)/∂φ with u = dS/dθ · ∇L_val(θ'), the way in which S
    moves along the validation gradient, taken as a central difference of S. So an entry of W grows where its push
    agrees with what the validation batch asks for. L_val is triplet_sh at the objective's margin, unweighted; Adam at
    meta_lr makes the length of lr immaterial. Costs five more passes through the encoder.
    Source: Wei et al. 2021 (Meta-SPN) after Shu et al. 2019 (Meta-Weight-Net); the central difference is ours.
    """
    from .forward import batch_loss, similarities

    assert state.outer is not None
    parameters = state.parameters()
    G = batch_loss(task, objective, S.detach(), mask, len(batch.captions)).gradient
    step = _gradient(task, S, G, parameters, retain=True)
    limit = task.recipe.clip or float("inf")
    rate = task.recipe.rate(state.epoch) * min(1.0, limit / max(_norm(step), 1e-12))
    with _moved(state, parameters, step, -rate):
        plain = build("objectives", f"triplet_sh:margin={getattr(objective, 'margin', 0.2)!r}")
        held_out = _validation_batch(task, state)
        val_mask = held_out.mask(task.val.caption_image, task.recipe.same_image).to(task.device)
        S_val, _, _ = similarities(task, state, task.val_sentences, held_out, plain, val_mask)
        asked = reduce_weights(both(plain, S_val.detach(), val_mask), 1.0, "sum", len(held_out.captions)).gradient
        direction = _gradient(task, S_val, asked, parameters)
    length = 0.01 / max(_norm(direction), 1e-12)
    found = []
    for sign in (1, -1):
        with torch.no_grad(), _moved(state, parameters, direction, sign * length):
            found.append(similarities(task, state, task.sentences, batch, objective, mask)[0])
    u = (found[0] - found[1]) / (2 * length)
    W = objective.differentiable_weights(S.detach(), mask) + objective.differentiable_weights(S.detach().T, mask.t()).T
    state.outer.zero_grad(set_to_none=True)
    (-(u * W).sum()).backward()  # type: ignore[no-untyped-call]
    state.outer.step()


def _validation_batch(task: Task, state: TrainState) -> Batch:
    """The next pairs of the validation split, a function of (seed, epoch, step)."""
    size = min(task.recipe.batch_size, len(task.val.captions))
    pairs = Sampling("pairs", size, task.recipe.seed + 1, drop_last=True)
    number = pairs.count(task.val.caption_image)
    epoch = state.epoch * 1_000_000 + state.step // number
    return next(pairs.batches(task.val.caption_image, epoch, state.step % number))


def _gradient(task: Task, S: Tensor, G: Tensor, parameters: Sequence[Tensor], retain: bool = False) -> list[Tensor]:
    """The gradient of one process, also where many have a part of it each."""
    part = G.to(S.dtype) / task.processes.size
    found = torch.autograd.grad(S, parameters, part, retain_graph=retain, allow_unused=True)
    whole = [torch.zeros_like(p) if g is None else g for p, g in zip(parameters, found, strict=True)]
    return sums(task.processes, whole)


def _norm(direction: Sequence[Tensor]) -> float:
    return float(torch.stack([g.norm() for g in direction]).norm())


@contextmanager
def _moved(
    state: TrainState, parameters: Sequence[Tensor], direction: Sequence[Tensor], length: float
) -> Iterator[None]:
    """The parameters moved along a direction; they, the buffers and the random numbers are put back."""
    kept = [(x, x.detach().clone()) for x in (*parameters, *state.model.buffers())]
    for p, d in zip(parameters, direction, strict=True):
        p.data.add_(d, alpha=length)  # by .data: the graph of the step under way holds these parameters, and still fits
    try:
        with torch.random.fork_rng({p.device for p in parameters if p.is_cuda}):
            yield
    finally:
        for x, before in kept:
            x.data.copy_(before)
