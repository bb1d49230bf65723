"""One training step on one batch, by one process and by several: the loss, and the gradient of shared parameters.

Every process encodes its share of the pairs with the same d x d matrix, gathers both sides, and evaluates its own rows
against all candidates; gradients of the matrix are averaged over processes, as DistributedDataParallel does.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lossscope.core.pair import Pair
from lossscope.core.similarity import Mask, both_masks, cosine, group_mask, normalise, pair_mask
from lossscope.core.weights import BatchLoss, Weights, backward, reduce_weights
from lossscope.registry import build, spec_of

from .spawn import (
    average_over_processes,
    gather_with_gradients,
    group_if_required,
    join_file_group,
    run_processes,
)

SHARE, WIDTH = 4, 16  # pairs of one process, at least; width of the embeddings


@dataclass(frozen=True)
class _Task:
    """A batch and the parameters that encode it."""

    images: Tensor  # (n, d), before encoding
    captions: Tensor  # (m, d), before encoding
    matrix: Tensor  # (d, d), shared by both sides
    mask: Mask  # of i2t

    def encode(self, rank: int, processes: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return the matrix as a leaf, and one process's share of both sides, encoded with it."""
        matrix = self.matrix.clone().requires_grad_()
        images, captions = (normalise(side.chunk(processes)[rank] @ matrix) for side in (self.images, self.captions))
        return matrix, images, captions


@dataclass(frozen=True)
class TrainingStep:
    """The result of a step, averaged over processes."""

    value: float | None  # the loss; None where the gradient is stated
    gradient: Tensor  # (d, d), of the matrix


@dataclass(frozen=True)
class Comparison:
    """The same step by one process and by several."""

    single: TrainingStep  # the whole batch on one process
    together: TrainingStep  # the batch distributed over all processes
    # with a gather before the loss, for a loss on embeddings that depends on its process's share alone; None where it
    # depends on the other processes
    gathered: TrainingStep | None = None


def compare_processes(objective: Any, processes: int, seed: int) -> Comparison:
    """Run the step on one process, and on several new ones. Raises ProcessError when one of them fails."""
    function = _step_on_embeddings if objective.traits.square else _step_on_rows
    comparison: Comparison = run_processes(function, processes, spec_of(objective), seed)
    return comparison


def group_if_needed(objective: Any, seed: int) -> AbstractContextManager[None]:
    """Join a process group of size 1, if the objective is a loss on embeddings that requires one."""
    if not objective.traits.square:
        return nullcontext()
    _, images, captions = _build_task(objective, 1, seed).encode(0, 1)
    return group_if_required(lambda: objective.loss(images, captions))


def _build_task(objective: Any, processes: int, seed: int) -> _Task:
    generator = torch.Generator().manual_seed(seed)
    share = max(SHARE, getattr(objective, "smallest_batch", 0))
    size, captions_per_image = share * processes, 2 if objective.traits.positives == "many" else 1
    images = torch.randn(size, WIDTH, generator=generator, dtype=torch.float64)
    captions = images.repeat_interleave(captions_per_image, 0)
    captions = captions + torch.randn(captions.shape, generator=generator, dtype=torch.float64)
    matrix = torch.eye(WIDTH, dtype=torch.float64)
    matrix = matrix + 0.2 * torch.randn(matrix.shape, generator=generator, dtype=torch.float64)
    rows = torch.arange(size)
    mask = pair_mask(rows) if captions_per_image == 1 else group_mask(rows, rows.repeat_interleave(captions_per_image))
    return _Task(images, captions, matrix, mask)


def _step_on_rows(rank: int, processes: int, file: Path, spec: str, seed: int) -> Comparison:
    """Run the steps of an objective of rows, in one of the processes."""
    objective = build("objectives", spec)
    task = _build_task(objective, processes, seed)

    def step(rank: int, processes: int, gather: Callable[[Tensor], Tensor]) -> TrainingStep:
        matrix, images, captions = task.encode(rank, processes)
        S = cosine(gather(images), gather(captions))
        share = _loss_of_share(objective, S.detach(), task.mask, rank, processes)
        backward(S, share.gradient, float(processes))
        return _average_step(None if share.value is None else share.value * processes, matrix)

    single = step(0, 1, lambda x: x)
    with join_file_group(file, rank, processes):
        return Comparison(single, step(rank, processes, gather_with_gradients))


def _loss_of_share(objective: Any, S: Tensor, mask: Mask, rank: int, processes: int) -> BatchLoss:
    """Return what one process's queries of both directions add to the training loss of the whole batch."""
    directions = zip((S, S.T.contiguous()), both_masks(mask), strict=True)
    weights = [_weights_of_share(objective, rows, part, rank, processes) for rows, part in directions]
    return reduce_weights(Pair(*weights), objective.traits.directions, objective.traits.reduction, S.shape[1])


def _weights_of_share(objective: Any, S: Tensor, mask: Mask, rank: int, processes: int) -> Weights:
    """Evaluate the objective on one process's rows, with 0 on the others; coupled objectives get all rows."""
    share = torch.arange(len(S)).chunk(processes)[rank]
    evaluated = torch.arange(len(S)) if objective.coupled else share
    weights = objective(S[evaluated], mask.rows(evaluated))
    kept = torch.isin(evaluated, share)
    W = torch.zeros_like(S).index_copy(0, share, weights.W[kept])
    values = None if weights.values is None else S.new_zeros(len(S)).index_copy(0, share, weights.values[kept])
    return Weights(W, values, mask.usable)


def _step_on_embeddings(rank: int, processes: int, file: Path, spec: str, seed: int) -> Comparison:
    """Run the steps of the user's function of embeddings as it is, in one of the processes."""
    objective = build("objectives", spec)
    task = _build_task(objective, processes, seed)

    def step(loss: Callable[..., Tensor], sides: list[Tensor], matrix: Tensor) -> tuple[Tensor, TrainingStep]:
        value = loss(*sides)
        if value.requires_grad:
            torch.autograd.backward(value)
        return value.detach(), _average_step(value.detach(), matrix)

    with group_if_needed(objective, seed):
        matrix, *sides = task.encode(0, 1)
        _, single = step(objective.loss, sides, matrix)
        matrix, *sides = task.encode(rank, processes)
        value_of_share, _ = step(objective.loss, sides, matrix)
    with join_file_group(file, rank, processes):
        matrix, *sides = task.encode(rank, processes)
        value, together = step(_with_rank(objective, rank, processes).loss, sides, matrix)
        of_share_alone = (value - value_of_share).abs() <= 1e-12 * value_of_share.abs().clamp(min=1)
        if not bool(gather_with_gradients(of_share_alone.double().reshape(1)).all()):
            return Comparison(single, together)
        matrix, *sides = task.encode(rank, processes)
        _, gathered = step(objective.loss, [gather_with_gradients(side) for side in sides], matrix)
        return Comparison(single, together, gathered)


def _average_step(value: Tensor | None, matrix: Tensor) -> TrainingStep:
    gradient = torch.zeros_like(matrix) if matrix.grad is None else matrix.grad
    return TrainingStep(
        None if value is None else float(average_over_processes(value)), average_over_processes(gradient)
    )


def _with_rank(objective: Any, rank: int, processes: int) -> Any:
    """Set the options `rank` and `world_size` of losses that have them, such as open_clip's."""
    names = {item.name for item in fields(objective)}
    return replace(objective, rank=rank, world_size=processes) if {"rank", "world_size"} <= names else objective
