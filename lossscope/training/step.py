"""One training step: a batch through the encoder to S, the objective's W, and W backwards into the parameters."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from lossscope.core.batches import Batch
from lossscope.core.similarity import Mask
from lossscope.core.weights import BatchLoss, backward
from lossscope.errors import InputError
from lossscope.objectives.base import Objective

from .data_parallel import seed_per_rank, sum_gradients
from .forward import batch_loss, similarities, similarity_summary
from .meta_step import meta_step
from .state import TrainState
from .task import Task


def train_step(
    task: Task, state: TrainState, objective: Objective, batch: Batch, ramp: float = 1.0
) -> dict[str, float]:
    """Update the model once; the row of trajectory.csv. ramp: factor on the loss that goes backwards.

    Every process of a job has the whole S and sends back its part of the one gradient, 1 / processes.
    Raises InputError when similarities are not finite.
    """
    seed_per_rank(task, state)
    pairs = len(batch.captions)
    mask = _mask(task, batch)
    if "offline" in objective.required_info:
        assert task.offline is not None
        batch = task.offline.extended(batch, task.train.caption_image, task.recipe.seed, state.epoch)
    S, mask, further = similarities(task, state, task.sentences, batch, objective, mask)
    if not bool(torch.isfinite(S).all()):
        raise InputError(
            f"training diverged: similarities are not finite in epoch {state.epoch + 1}, step {state.step + 1}. "
            f"Use a lower --lr (it is {task.recipe.rate(state.epoch):g}); the last good state is {task.run.last}"
        )
    upstream = state.upstream if objective.learnable else None
    if upstream is not None:
        objective = upstream.with_learnt(objective)
    if state.outer is not None and objective.network() is not None:
        meta_step(task, state, objective, S, mask, batch)
    if task.watcher is not None:
        task.watcher.watch(state.epoch, state.step, objective, S, mask)
    loss = batch_loss(task, objective, S.detach(), mask, pairs)
    loss = replace(loss, value=plus(loss.value, further))
    state.optimiser.zero_grad(set_to_none=True)
    scale = state.scaler.scale(torch.tensor(ramp, device=task.device)) if state.scaler.is_enabled() else ramp
    scale = scale / task.processes.size
    backward(S, loss.gradient, scale, further)
    if upstream is not None:
        upstream.receive(S, loss.gradient * scale, objective)
    updated = _update(task, state, loss)
    if not task.processes.main:
        return updated
    return {**updated, **similarity_summary(S.detach()[: len(mask.match), : mask.match.shape[1]], mask)}


def plus(value: Tensor | None, further: Tensor | None) -> Tensor | None:
    """The objective's loss and the model's own; None where the objective has no value."""
    return value if value is None or further is None else value + further.detach()


def _update(task: Task, state: TrainState, loss: BatchLoss) -> dict[str, float]:
    beside = list(state.upstream.parameters()) if state.upstream is not None else []
    sum_gradients(task.processes, [*state.parameters(), *beside])
    state.scaler.unscale_(state.optimiser)
    clip = task.recipe.clip or float("inf")
    norm = torch.nn.utils.clip_grad_norm_(state.parameters(), clip)
    state.scaler.step(state.optimiser)
    state.scaler.update()
    value = float("nan") if loss.value is None else float(loss.value)
    return {"loss": value, "gradient_norm": float(norm), "lr": float(state.optimiser.param_groups[0]["lr"])}


def _mask(task: Task, batch: Batch) -> Mask:
    """The i2t mask on the device, with what is known of each pair."""
    mask = batch.mask(task.train.caption_image, task.recipe.same_image)
    if task.info:
        rows = torch.from_numpy(batch.captions)
        mask = replace(mask, info={name: column[rows] for name, column in task.info.items()})
    return mask.to(task.device)
