"""Which weights would have helped a validation batch? The outer step of an objective that learns its weighting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn

from lossscope.core.batches import Batch, Sampling
from lossscope.core.distributed import ProcessGroup
from lossscope.core.relations import Relations
from lossscope.core.weights import both, reduce_weights
from lossscope.objectives.base import Objective
from lossscope.registry import build

from .data_parallel import StepSeed, sum_tensors
from .forward import BatchInputs, Forward


class MetaBatches(NamedTuple):
    """The training batch of a step, and the validation batch that its weights are to help."""

    train: BatchInputs
    S: Tensor  # of the training batch, with its graph
    gradient: Tensor  # dL/dS of the training batch
    validation: BatchInputs  # of the validation split


class VirtualStep(NamedTuple):
    """The trial step of the encoder."""

    lr: float  # its length
    clip: float  # largest norm of its gradient; 0: any


def meta_step(
    objective: Objective,
    optimiser: torch.optim.Optimizer,
    forward: Forward,
    batches: MetaBatches,
    virtual: VirtualStep,
    seed: StepSeed,
) -> None:
    """Update the objective's network φ by the gradient of a validation batch's loss one virtual step ahead.

    θ' = θ − lr ∇θ L(θ; φ), and dL_val(θ')/dφ = −lr Σ u ∘ ∂W(φ)/∂φ with u = dS/dθ · ∇L_val(θ'), the change of S along
    the validation gradient, taken as a central difference of S. So an entry of W grows where its push agrees with the
    validation batch. L_val is triplet_sh at the objective's margin, unweighted; with Adam at meta_lr the length of lr
    does not matter. It costs five more passes through the encoder.
    Source: Wei et al. 2021 (Meta-SPN) after Shu et al. 2019 (Meta-Weight-Net); the central difference is ours.

    Args:
        objective: its network learns.
        optimiser: of the network.
        forward: the encoder.
        batches: of both splits.
        virtual: the virtual step.
        seed: of the step.
    """
    train, S, gradient, validation = batches
    parameters = [p for p in forward.model.parameters() if p.requires_grad]
    buffers = list(forward.model.buffers())
    step = _gradient(forward.processes, S, gradient, parameters, retain=True)
    rate = virtual.lr * min(1.0, (virtual.clip or float("inf")) / max(_norm(step), 1e-12))
    with _shifted_parameters(parameters, buffers, step, -rate):
        unweighted = build("objectives", f"triplet_sh:margin={getattr(objective, 'margin', 0.2)!r}")
        S_val = forward.run(validation, seed).S
        loss = both(unweighted, S_val.detach(), validation.mask)
        wanted = reduce_weights(loss, 1.0, "sum", validation.batch.pairs).gradient
        direction = _gradient(forward.processes, S_val, wanted, parameters)
    length = 0.01 / max(_norm(direction), 1e-12)
    moved = []
    for sign in (1, -1):
        with torch.no_grad(), _shifted_parameters(parameters, buffers, direction, sign * length):
            moved.append(forward.run(train, seed).S)
    u = (moved[0] - moved[1]) / (2 * length)
    mask = train.mask
    W = objective.differentiable_weights(S.detach(), mask) + objective.differentiable_weights(S.detach().T, mask.t()).T
    optimiser.zero_grad(set_to_none=True)
    (-(u * W).sum()).backward()  # type: ignore[no-untyped-call]
    optimiser.step()


def validation_batch(relations: Relations, batch_size: int, seed: StepSeed) -> Batch:
    """Return the next pairs of the validation split, a function of (seed, epoch, step).

    Args:
        relations: positives of the split.
        batch_size: of the training; at most all pairs of the split.
        seed: of the step.
    """
    size = min(batch_size, len(relations.positives))
    pairs = Sampling("pairs", size, seed.seed + 1, drop_last=True)
    number = pairs.count(relations)
    epoch = seed.epoch * 1_000_000 + seed.step // number
    return next(pairs.batches(relations, epoch, seed.step % number))


def _gradient(
    processes: ProcessGroup, S: Tensor, G: Tensor, parameters: Sequence[nn.Parameter], retain: bool = False
) -> list[Tensor]:
    """Return the whole gradient, summed over processes if there are many."""
    share = G.to(S.dtype) / processes.size
    gradients = torch.autograd.grad(S, parameters, share, retain_graph=retain, allow_unused=True)
    whole = [torch.zeros_like(p) if g is None else g for p, g in zip(parameters, gradients, strict=True)]
    return sum_tensors(processes, whole)


def _norm(direction: Sequence[Tensor]) -> float:
    return float(torch.stack([g.norm() for g in direction]).norm())


@contextmanager
def _shifted_parameters(
    parameters: Sequence[nn.Parameter], buffers: Sequence[Tensor], direction: Sequence[Tensor], length: float
) -> Iterator[None]:
    """Move the parameters along a direction inside; restore them, the buffers and the random generators after it."""
    before = [(x, x.detach().clone()) for x in (*parameters, *buffers)]
    for p, d in zip(parameters, direction, strict=True):
        p.data.add_(d, alpha=length)  # by .data: the graph of the current step holds these parameters, and still fits
    try:
        with torch.random.fork_rng({p.device for p in parameters if p.is_cuda}):
            yield
    finally:
        for x, value in before:
            x.data.copy_(value)
