"""Compute the objective's loss on the validation split, from the similarities that are ranked."""

from __future__ import annotations

import math
import statistics
from dataclasses import replace

import torch
from torch import Tensor

from lossscope.encoders.base import Encoder
from lossscope.errors import InputError
from lossscope.objectives.base import Gradient
from lossscope.registry import short_spec
from lossscope.sources.checkpoints.embed import embed

from .false_negatives import hide_negatives_of
from .forward import batch_loss
from .state import TrainState
from .task import Task


def validation_loss(task: Task, state: TrainState, S: Tensor) -> float:
    """mean_b L(S_b): return the loss of the validation split, without a gradient; NaN where there is none.

    L is the recipe's objective with its reduction and masks, in the warm-up too, at the learnt scale and network. The
    batches b are made as those of training, from a seed of their own, so that every epoch and every run has the same
    ones. No random generator moves. Pairs of the validation split have no numbers of --info and no estimated labels,
    as those are of the training split. A loss of the model itself (VSRN's captions) is not in it.
    Figure 3 (a) of Li et al. 2022 plots it.

    Args:
        task: with the validation split.
        state: the model, its learnt scale.
        S: (images, captions) of the whole split, direction i2t.
    """
    if why_no_validation_loss(task, state.model) is not None:
        return math.nan
    objective, relations = task.objective, task.val.relations
    if state.learnt_scale is not None:
        objective = state.learnt_scale.with_learnt(objective)
    vectors = embed(state.model, task.val_captions) if objective.traits.needs_embeddings else None
    losses: list[float] = []
    for batch in replace(task.sampling, seed=0).batches(relations):
        images, captions = torch.from_numpy(batch.images), torch.from_numpy(batch.captions)
        mask = batch.mask(relations, task.recipe.same_image)
        if vectors is not None:
            info = {"queries": vectors[0][images], "candidates": vectors[1][captions]}
            mask = replace(mask, info={**mask.info, **info})
        of_batch = S[images][:, captions]
        masks = hide_negatives_of(task, batch, of_batch, mask, task.val)
        value = batch_loss(objective, of_batch, masks, task.recipe.reduction, batch.pairs).value
        losses.append(math.nan if value is None else float(value))
    return statistics.fmean(losses)


def why_no_validation_loss(task: Task, model: Encoder) -> str | None:
    """Return why the validation split has no loss; None where it has one."""
    name = short_spec(task.objective)
    if isinstance(task.objective, Gradient):
        return f"{name} states its gradient and has no loss"
    if "offline" in task.objective.traits.required_info:
        return f"{name} compares with offline candidates, which are of the training split"
    if model.needs_full_matrix:
        return f"{task.recipe.encoder} ranks each direction by scores of its own"
    if any(rule.needs == "items" for rule in task.masks):
        return f"the pairs of --mask {task.recipe.mask} are of the training split"
    try:
        batches = task.sampling.count(task.val.relations)
    except InputError as error:
        return f"batches do not fit the validation split ({error})"
    return None if batches else f"the validation split has no whole batch of {task.recipe.batch_size} (--drop-last)"
