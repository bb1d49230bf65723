"""Take a training step: the encoder makes S of a batch, the objective makes W, and W flows back to the parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from lossscope.core.batches import Batch
from lossscope.core.pair import Pair
from lossscope.core.similarity import Mask
from lossscope.core.weights import BatchLoss, backward
from lossscope.errors import InputError
from lossscope.objectives.base import Objective

from .data_parallel import StepSeed, seed_per_rank, sum_gradients
from .false_negatives import hide_negatives_of
from .forward import BatchInputs, Forward, batch_loss, similarity_summary
from .meta_step import MetaBatches, VirtualStep, meta_step, validation_batch
from .monitor import BatchMonitor
from .optimisers import learning_rate
from .recipe import Recipe
from .state import TrainState
from .task import Task
from .trained_batch import TrainedBatch


@dataclass(frozen=True)
class Step:
    """The objective and the position of a step."""

    objective: Objective  # of the epoch
    factor: float = 1.0  # on the loss
    number: int = 0  # in the whole run
    steps: int = 1  # of the whole run


def train_step(
    task: Task,
    state: TrainState,
    step: Step,
    batch: Batch,
    saved: Path,
    monitor: BatchMonitor | None = None,
    on_batch: Callable[[TrainedBatch], None] | None = None,
) -> dict[str, float]:
    """Update the model once; return the row of trajectory.csv.

    Each process of a job has the whole S and sends back its share of the gradient, 1 / processes.

    Args:
        task: the data and the constant parts of the training.
        state: to update.
        step: objective and position.
        batch: rows of the training split.
        saved: file of the last good state, for the message of a divergence.
        monitor: runs probes on the batch before the update.
        on_batch: called with the batch after the update, and if its similarities are not finite.

    Raises:
        InputError: similarities are not finite.
    """
    objective, seed = step.objective, StepSeed(task.recipe.seed, state.epoch, state.step)
    seed_per_rank(task.processes, seed)
    forward = Forward(state.model, task.recipe.encoder, task.device, task.recipe.precision, task.processes)
    pairs = batch.pairs
    mask = _mask(task, batch, state.labels)
    if "offline" in objective.traits.required_info:
        assert task.candidates is not None
        batch = task.candidates.extend(batch, task.train.relations.caption_image, task.recipe.seed, state.epoch)
    embeddings = objective.traits.needs_embeddings or (monitor is not None and monitor.needs_embeddings)
    embeddings |= on_batch is not None and not state.model.pairwise
    S, mask, extra_loss = forward.run(BatchInputs(task.captions, batch, mask), seed, embeddings)

    def tell(masks: Mask | Pair[Mask], row: dict[str, float]) -> None:
        if on_batch is not None:
            position = state.epoch, state.step, step.number
            on_batch(TrainedBatch(*position, objective, S.detach(), masks, row, batch, task.train, step.steps))

    if not bool(torch.isfinite(S).all()):
        tell(mask, {})
        raise _not_finite(task.recipe, state, saved)
    learnt = state.learnt_scale if objective.learnable else None
    if learnt is not None:
        objective = learnt.with_learnt(objective)
    if state.network_optimiser is not None and objective.network() is not None:
        _outer_step(task, state, objective, forward, BatchInputs(task.captions, batch, mask), S, seed)
    masks = hide_negatives_of(task, batch, S, mask, task.train)
    if monitor is not None:
        monitor.record(state.epoch, state.step, objective, S, masks)
    loss = batch_loss(objective, S.detach(), masks, task.recipe.reduction, pairs)
    loss = replace(loss, value=_sum(loss.value, extra_loss))
    state.optimiser.zero_grad(set_to_none=True)
    scale: Tensor | float = step.factor
    if state.scaler.is_enabled():
        scale = state.scaler.scale(torch.tensor(step.factor, device=task.device))
    scale = scale / task.processes.size
    backward(S, loss.gradient, scale, extra_loss)
    if learnt is not None:
        learnt.set_gradients(S, loss.gradient * scale, objective)
    row = _update(task, state, loss)
    if not task.processes.main:
        return row
    q, c = mask.match.shape
    row |= similarity_summary(S.detach()[:q, :c], masks)
    tell(masks, row)
    return row


def _outer_step(
    task: Task,
    state: TrainState,
    objective: Objective,
    forward: Forward,
    train: BatchInputs,
    S: Tensor,
    seed: StepSeed,
) -> None:
    """Let the objective's network learn from a batch of the validation split."""
    assert state.network_optimiser is not None
    recipe = task.recipe
    gradient = batch_loss(objective, S.detach(), train.mask, recipe.reduction, train.batch.pairs).gradient
    batch = validation_batch(task.val.relations, recipe.batch_size, seed)
    mask = batch.mask(task.val.relations, recipe.same_image).to(task.device)
    validation = BatchInputs(task.val_captions, batch, mask)
    virtual = VirtualStep(learning_rate(recipe, state.epoch), recipe.clip)
    batches = MetaBatches(train, S, gradient, validation)
    meta_step(objective, state.network_optimiser, forward, batches, virtual, seed)


def _not_finite(recipe: Recipe, state: TrainState, saved: Path) -> InputError:
    return InputError(
        f"training diverged: similarities are not finite in epoch {state.epoch + 1}, step {state.step + 1}. "
        f"Use a lower --lr (it is {learning_rate(recipe, state.epoch):g}); the last good state is {saved}"
    )


def _sum(value: Tensor | None, extra_loss: Tensor | None) -> Tensor | None:
    """Return the sum of the objective's loss and the model's; None if the objective has no value."""
    return value if value is None or extra_loss is None else value + extra_loss.detach()


def _update(task: Task, state: TrainState, loss: BatchLoss) -> dict[str, float]:
    beside = list(state.learnt_scale.parameters()) if state.learnt_scale is not None else []
    sum_gradients(task.processes, [*state.parameters(), *beside])
    state.scaler.unscale_(state.optimiser)
    clip = task.recipe.clip or float("inf")
    norm = torch.nn.utils.clip_grad_norm_(state.parameters(), clip)
    state.scaler.step(state.optimiser)
    state.scaler.update()
    value = float("nan") if loss.value is None else float(loss.value)
    return {"loss": value, "gradient_norm": float(norm), "lr": float(state.optimiser.param_groups[0]["lr"])}


def _mask(task: Task, batch: Batch, labels: Tensor | None) -> Mask:
    """Return the i2t mask on the device, with the numbers of --info and the label of each pair."""
    mask = batch.mask(task.train.relations, task.recipe.same_image)
    columns = {**task.info, **({} if labels is None else {"label": labels})}
    if columns:
        rows = torch.from_numpy(batch.captions)
        mask = replace(mask, info={name: column[rows] for name, column in columns.items()})
    return mask.to(task.device)
