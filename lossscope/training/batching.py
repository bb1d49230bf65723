"""Cut the training split into the batches of an epoch."""

from __future__ import annotations

from collections.abc import Iterator

from lossscope.core.batches import Batch, Sampling
from lossscope.core.relations import Relations
from lossscope.core.types import Rows, SamplingMode
from lossscope.errors import InputError
from lossscope.objectives.base import Objective

from .recipe import Recipe


def sampling_of(recipe: Recipe, objective: Objective) -> Sampling:
    """Return the recipe's way of making batches, or else the objective's. Raises InputError if they do not fit."""
    mode: SamplingMode = recipe.sampling or ("images" if objective.traits.positives == "many" else "pairs")
    if mode in ("images", "groups") and objective.traits.positives == "one":
        what = f"{recipe.objective}, which takes one positive"
        raise InputError(f"sampling must be pairs or single for {what}; got {mode}")
    return Sampling(
        mode, recipe.batch_size, recipe.seed, drop_last=recipe.drop_last, min_batch_size=2,
        negatives=recipe.negatives, mined=recipe.mined or None,
    )  # fmt: skip


def epoch_batches(
    sampling: Sampling, relations: Relations | Rows, epoch: int, start: int, steps: int
) -> Iterator[Batch]:
    """Yield the batches of an epoch from step `start` on.

    Args:
        sampling: how batches are made.
        relations: positives of the split, or the image row of each caption.
        epoch: from 0.
        start: finished steps of the epoch.
        steps: batches of an epoch, from as many passes over the split as they need. 0: one pass over the split.
    """
    number = sampling.count(relations)
    if not steps or not number:
        yield from sampling.batches(relations, epoch, start)
        return
    step, end = epoch * steps + start, (epoch + 1) * steps
    while step < end:
        for batch in sampling.batches(relations, step // number, step % number):
            yield batch
            step += 1
            if step == end:
                return
