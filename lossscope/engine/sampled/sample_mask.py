"""The mask of some queries of a batch against all of its candidates, in the memory of the queries."""

from __future__ import annotations

import numpy as np

from lossscope.core.batches import Batch
from lossscope.core.relations import Relations
from lossscope.core.types import Direction, Rows, SameImage

from ..tiled.sparse_mask import SparseEntries, SparseMask


def sample_mask(
    batch: Batch, relations: Relations, same_image: SameImage, sample: Rows, direction: Direction
) -> SparseMask:
    """Return the rows of a direction's SparseMask that are in the sample.

    Args:
        batch: rows of both sides.
        relations: positives of the split.
        same_image: what another positive of the same item is, see `Batch.mask`.
        sample: (n,) places of the queries in the batch, in increasing order.
        direction: whether they are of the first side.
    """
    queries, candidates = (batch.images, batch.captions) if direction == "i2t" else (batch.captions, batch.images)
    related = relations if direction == "i2t" else relations.t()
    local = np.arange(len(sample), dtype=np.int64)
    no_entries = np.zeros(0, np.int64), np.zeros(0, np.int64)
    invalid = no_entries
    if batch.mode in ("images", "groups"):
        positives = related.entries(queries[sample], candidates)
    elif batch.mode == "classes":
        positives, invalid = related.entries(queries[sample], candidates), (local, sample)
    elif batch.mode == "views":
        positives, invalid = (local, batch.partners()[sample]), (local, sample)
        if same_image == "mask":
            rows, columns = batch.view_relations(relations)
            drawn = np.isin(rows, sample)
            other = np.searchsorted(sample, rows[drawn]), columns[drawn]
            invalid = np.concatenate([local, other[0]]), np.concatenate([sample, other[1]])
    else:
        paired = sample < min(len(batch.images), batch.pairs)  # mined negatives, behind the pairs, have no positive
        positives = local[paired], sample[paired]
        if same_image == "mask":
            rows, columns = related.entries(queries[sample], candidates)
            other_item = sample[rows] != columns
            invalid = rows[other_item], columns[other_item]
    return SparseMask(len(sample), len(candidates), SparseEntries.of(*positives), SparseEntries.of(*invalid), direction)
