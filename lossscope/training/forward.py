"""From a batch to S, from S to the training loss and its gradient."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from lossscope.core.batches import Batch
from lossscope.core.similarity import Mask
from lossscope.core.weights import BatchLoss, both, reduce_weights
from lossscope.errors import InputError
from lossscope.objectives.base import Objective
from lossscope.sources.checkpoints.captions import CaptionBatcher

from . import quintuplet_loss
from .data_parallel import encode_shared, shared_rng
from .state import TrainState
from .task import Task


def similarities(
    task: Task, state: TrainState, sentences: CaptionBatcher, batch: Batch, objective: Objective, mask: Mask
) -> tuple[Tensor, Mask, Tensor | None]:
    """S (images, captions) of a batch with its graph, the mask with embeddings where the objective wants them, and
    the further loss of the model itself, if it has one."""
    ids, lengths = sentences.take(batch.captions, task.device)
    with _precision(task.recipe.precision, task.device):
        sides = encode_shared(task, state, sentences, batch, (ids, lengths))
    if objective.needs_embeddings or (task.watcher is not None and task.watcher.needs_embeddings):
        vectors = {name: side.vectors.detach() for name, side in zip(("queries", "candidates"), sides, strict=True)}
        mask = replace(mask, info={**mask.info, **vectors})
    with torch.autocast(task.device.type, enabled=False), shared_rng(task, state):
        S = state.model.score(*sides)
        if not isinstance(S, Tensor):
            raise InputError(f"S must be one matrix to train; the two directions of {task.recipe.encoder} differ")
        S = S.float()
        return S, mask, state.model.extra_loss(*sides, S, mask, ids, lengths)


def batch_loss(task: Task, objective: Objective, S: Tensor, mask: Mask, pairs: int) -> BatchLoss:
    """The training loss of a batch and its gradient with respect to S."""
    reduction = task.recipe.reduction or objective.reduction
    if "offline" in objective.required_info:
        return quintuplet_loss.weigh(objective, S, mask, reduction, pairs)
    return reduce_weights(both(objective, S, mask), objective.directions, reduction, pairs)


def similarity_summary(S: Tensor, mask: Mask) -> dict[str, float]:
    """Mean and 10, 50, 90 % quantiles of positive and of hardest-negative similarities, both directions together."""
    hardest = S.masked_fill(mask.non_negatives, -torch.inf)
    negatives = torch.cat([hardest.amax(1), hardest.amax(0)])
    found: dict[str, float] = {}
    for name, values in (("pos", S[mask.positives]), ("neg", negatives[negatives.isfinite()])):
        values = values if len(values) else S.new_full((1,), float("nan"))
        found[f"{name}_mean"] = float(values.mean())
        for q in (10, 50, 90):
            found[f"{name}_q{q}"] = float(_quantile(values, q / 100))
    return found


def _quantile(values: Tensor, q: float) -> Tensor:
    """Nearest-rank quantile; torch.quantile refuses large inputs."""
    return values.sort().values[round(q * (len(values) - 1))]


def _precision(precision: str, device: torch.device) -> contextlib.AbstractContextManager[Any]:
    types = {"bf16": torch.bfloat16, "fp16": torch.float16}
    return torch.autocast(device.type, types[precision]) if precision in types else contextlib.nullcontext()
