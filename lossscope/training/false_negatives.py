"""Leave out negatives of a training batch that are probably relevant, by the recipe's rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from lossscope.core.batches import Batch
from lossscope.core.masks.base import BatchItems, MaskInputs, NegativeMask, hide_negatives
from lossscope.core.pair import Pair
from lossscope.core.similarity import Mask
from lossscope.core.types import Rows
from lossscope.datasets.base import Split

from .task import Task


def hide_negatives_of(task: Task, batch: Batch, S: Tensor, mask: Mask, split: Split) -> Mask | Pair[Mask]:
    """Return the masks of a batch without the negatives that the recipe's rules hide; without rules the mask itself.

    Args:
        task: with the rules.
        batch: rows of the split.
        S: of the batch; offline rows and columns beyond the mask do not count.
        mask: of the first direction.
        split: of the training or of the validation.
    """

    def read_keys() -> Pair[Rows | None]:
        return task.input_keys if split is task.train else task.val_input_keys

    return hide_by_rules_of_batch(task.masks, batch, S, mask, split, read_keys)


def hide_by_rules_of_batch(
    rules: Sequence[NegativeMask],
    batch: Batch,
    S: Tensor,
    mask: Mask,
    split: Split,
    read_keys: Callable[[], Pair[Rows | None]],
) -> Mask | Pair[Mask]:
    """Return the masks of a batch without the negatives that rules hide; without rules the mask itself.

    As in a sweep, each direction decides by its queries: what `above` hides from a query may stay a negative of the
    document.

    Args:
        rules: of `lossscope list masks`.
        batch: rows of the split.
        S: of the batch; offline rows and columns beyond the mask do not count.
        mask: of the first direction.
        split: that the batch is of.
        read_keys: returns numbers of the items of both sides, equal if their inputs are; called if a rule needs them.
    """
    if not rules:
        return mask
    q, c = mask.match.shape
    queries, candidates = batch.images[:q], batch.captions[:c]
    S = S.detach()[:q, :c]
    related = torch.from_numpy(split.relations.is_positive(queries, candidates)).to(S.device)
    keys: Pair[Rows | None] = Pair(None, None)
    if any(rule.needs == "keys" for rule in rules):
        keys = read_keys()
    ids = split.image_ids, split.caption_ids
    first_items, second_items = (
        BatchItems(*ids, queries, candidates[None]),
        BatchItems(*ids, candidates, queries[None], first_are_queries=False),
    )
    first = MaskInputs(S, mask, related, _of_every_query(keys.t2i, candidates, q), items=first_items)
    second = MaskInputs(S.T, mask.t(), related.T, _of_every_query(keys.i2t, queries, c), items=second_items)
    return Pair(hide_negatives(first, rules), hide_negatives(second, rules))


def _of_every_query(keys: Rows | None, candidates: Rows, queries: int) -> Tensor | None:
    """(queries, c) keys of the candidates of a batch."""
    return None if keys is None else torch.from_numpy(keys[candidates]).expand(queries, len(candidates))
