"""Negatives of a training batch that the recipe's rules leave out, as they are probably relevant."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from lossscope.core.batches import Batch
from lossscope.core.masks.base import MaskInputs, hide_negatives
from lossscope.core.similarity import Mask

from .task import Task


def hide_negatives_of(task: Task, batch: Batch, S: Tensor, mask: Mask) -> Mask:
    """Return the mask of a batch without the negatives that the rules hide; one mask for both directions.

    A rule that compares with the positive compares with that of the query of the first side.

    Args:
        task: with the rules.
        batch: rows of the training split.
        S: of the batch; offline rows and columns after those of the mask are left out.
        mask: of the first direction.
    """
    if not task.masks:
        return mask
    q, c = mask.match.shape
    relations, keys = task.train.relations, None
    related = torch.from_numpy(relations.is_positive(batch.images[:q], batch.captions[:c])).to(S.device)
    if any(rule.needs == "keys" for rule in task.masks):
        of_candidates = task.input_keys.t2i
        keys = None if of_candidates is None else torch.from_numpy(of_candidates[batch.captions[:c]]).expand(q, c)
    inputs = MaskInputs(S.detach()[:q, :c], mask, related, keys)
    valid = mask.valid
    for rule in task.masks:
        valid = valid & hide_negatives(inputs, rule).valid
    return replace(mask, valid=valid)
