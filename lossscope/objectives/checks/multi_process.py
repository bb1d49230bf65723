"""One batch, trained on by one process and by many: the loss, and the gradient of shared parameters.

Every process encodes its share of the pairs with the same d x d matrix, gathers both sides, and weighs its own rows
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

from .spawn import averaged, gathered, group, run, solitary

SHARE, WIDTH = 4, 16  # pairs of one process; width of the embeddings


@dataclass(frozen=True)
class _Task:
    """Items of both sides before encoding, (n, d), the shared matrix (d, d), the i2t mask."""

    images: Tensor
    captions: Tensor
    matrix: Tensor
    mask: Mask

    def encoded(self, rank: int, ranks: int) -> tuple[Tensor, Tensor, Tensor]:
        """The matrix as a leaf, and one rank's share of both sides, encoded with it."""
        matrix = self.matrix.clone().requires_grad_()
        images, captions = (normalise(side.chunk(ranks)[rank] @ matrix) for side in (self.images, self.captions))
        return matrix, images, captions


@dataclass(frozen=True)
class Step:
    """The loss, None where the gradient is stated, and the gradient of the matrix; both averaged over ranks."""

    value: float | None
    gradient: Tensor


@dataclass(frozen=True)
class Found:
    """alone: the whole batch on one process. together: the same, spread over all.

    repaired: of a loss on embeddings that gives on every rank the loss of the rank's share alone, the same with our
    gather before it; None where it sees the other ranks.
    """

    alone: Step
    together: Step
    repaired: Step | None = None


def measured(objective: Any, ranks: int, seed: int) -> Found:
    """One batch on one process, and spread over as many new ones. Raises RankError when one of them fails."""
    found: Found = run(_of_embeddings if objective.square else _of_rows, ranks, spec_of(objective), seed)
    return found


def alone(objective: Any, seed: int) -> AbstractContextManager[None]:
    """A process group of one, for a loss on embeddings that can not do without."""
    if not objective.square:
        return nullcontext()
    _, images, captions = _task(objective, 1, seed).encoded(0, 1)
    return solitary(lambda: objective.loss(images, captions))


def _task(objective: Any, ranks: int, seed: int) -> _Task:
    random = torch.Generator().manual_seed(seed)
    size, each = SHARE * ranks, 2 if objective.positives == "many" else 1
    images = torch.randn(size, WIDTH, generator=random, dtype=torch.float64)
    captions = images.repeat_interleave(each, 0)
    captions = captions + torch.randn(captions.shape, generator=random, dtype=torch.float64)
    matrix = torch.eye(WIDTH, dtype=torch.float64)
    matrix = matrix + 0.2 * torch.randn(matrix.shape, generator=random, dtype=torch.float64)
    rows = torch.arange(size)
    mask = pair_mask(rows) if each == 1 else group_mask(rows, rows.repeat_interleave(each))
    return _Task(images, captions, matrix, mask)


def _of_rows(rank: int, ranks: int, meeting: Path, spec: str, seed: int) -> Found:
    """An objective of rows, in one process."""
    objective = build("objectives", spec)
    task = _task(objective, ranks, seed)

    def step(rank: int, ranks: int, gather: Callable[[Tensor], Tensor]) -> Step:
        matrix, images, captions = task.encoded(rank, ranks)
        S = cosine(gather(images), gather(captions))
        share = _share(objective, S.detach(), task.mask, rank, ranks)
        backward(S, share.gradient, float(ranks))
        return _step(None if share.value is None else share.value * ranks, matrix)

    single = step(0, 1, lambda x: x)
    with group(meeting, rank, ranks):
        return Found(single, step(rank, ranks, gathered))


def _share(objective: Any, S: Tensor, mask: Mask, rank: int, ranks: int) -> BatchLoss:
    """What one rank's queries of both directions add to the training loss of the whole batch."""
    sides = zip((S, S.T.contiguous()), both_masks(mask), strict=True)
    weights = [_of_own_rows(objective, side, part, rank, ranks) for side, part in sides]
    return reduce_weights(Pair(*weights), objective.directions, objective.reduction, S.shape[1])


def _of_own_rows(objective: Any, S: Tensor, mask: Mask, rank: int, ranks: int) -> Weights:
    """The objective on one rank's rows, 0 on the others; coupled rows must see the others to know their weights."""
    own = torch.arange(len(S)).chunk(ranks)[rank]
    seen = torch.arange(len(S)) if objective.coupled else own
    found = objective(S[seen], mask.rows(seen))
    kept = torch.isin(seen, own)
    W = torch.zeros_like(S).index_copy(0, own, found.W[kept])
    values = None if found.values is None else S.new_zeros(len(S)).index_copy(0, own, found.values[kept])
    return Weights(W, values, mask.usable)


def _of_embeddings(rank: int, ranks: int, meeting: Path, spec: str, seed: int) -> Found:
    """The author's function of embeddings as it is, in one process."""
    objective = build("objectives", spec)
    task = _task(objective, ranks, seed)

    def step(loss: Callable[..., Tensor], sides: list[Tensor], matrix: Tensor) -> tuple[Tensor, Step]:
        value = loss(*sides)
        if value.requires_grad:
            torch.autograd.backward(value)
        return value.detach(), _step(value.detach(), matrix)

    with alone(objective, seed):
        matrix, *sides = task.encoded(0, 1)
        _, single = step(objective.loss, sides, matrix)
        matrix, *sides = task.encoded(rank, ranks)
        of_share, _ = step(objective.loss, sides, matrix)
    with group(meeting, rank, ranks):
        matrix, *sides = task.encoded(rank, ranks)
        value, together = step(_placed(objective, rank, ranks).loss, sides, matrix)
        blind = (value - of_share).abs() <= 1e-12 * of_share.abs().clamp(min=1)
        if not bool(gathered(blind.double().reshape(1)).all()):
            return Found(single, together)
        matrix, *sides = task.encoded(rank, ranks)
        _, repaired = step(objective.loss, [gathered(side) for side in sides], matrix)
        return Found(single, together, repaired)


def _step(value: Tensor | None, matrix: Tensor) -> Step:
    gradient = torch.zeros_like(matrix) if matrix.grad is None else matrix.grad
    return Step(None if value is None else float(averaged(value)), averaged(gradient))


def _placed(objective: Any, rank: int, ranks: int) -> Any:
    """Losses that want to be told their place, as open_clip's, are told it."""
    known = {item.name for item in fields(objective)}
    return replace(objective, rank=rank, world_size=ranks) if {"rank", "world_size"} <= known else objective
