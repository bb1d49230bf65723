"""Draw batches as a training does; their pairs stand for all pairs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import numpy as np

from lossscope.core.batches import Batch, Sampling
from lossscope.core.relations import Relations
from lossscope.errors import InputError

from ..types import PairRows

_PAIRS = 300_000  # of queries and candidates in all batches together
_LARGE = 2048  # items: a single batch larger than this is enough


def random_batches(relations: Relations, size: int, seed: int) -> list[Batch]:
    """Return batches of a pass over the split, about 300,000 pairs in all; at least two batches of up to 2,048 items.

    Raises InputError for a split without a batch of two, and for an odd size or a size below 4 of a labelled set.
    """
    if relations.one_set and (size < 4 or size % 2):
        raise InputError(
            f"a batch of one labelled set must have an even number of items, 4 or more, as each of its labels has two; "
            f"got {size}. Change --batch-size"
        )
    mode = "classes" if relations.one_set else "pairs"
    sampling = Sampling(mode, size, seed, min_batch_size=2, per_class=2)  # type: ignore[arg-type]
    count = max(1 if size > _LARGE else 2, -(-_PAIRS // (size * size)))
    batches = [batch for batch in islice(sampling.batches(relations), count) if len(batch.images) > 1]
    if not batches:
        raise InputError(f"a batch of {size} must have two pairs; the split has fewer")
    return batches


def pairs_of(batches: Sequence[Batch], relations: Relations) -> tuple[PairRows, list[np.ndarray]]:
    """Return the pairs of batches that are no known matches, and for each batch (b, c) bool, True at these pairs."""
    left, right, masks = [], [], []
    for batch in batches:
        negative = ~relations.is_positive(batch.images, batch.captions)
        if relations.one_set:
            negative &= batch.images[:, None] != batch.captions[None, :]
        rows, columns = np.nonzero(negative)
        left.append(batch.images[rows])
        right.append(batch.captions[columns])
        masks.append(negative)
    return PairRows(np.concatenate(left), np.concatenate(right)), masks
