"""Is the mask of a sample a set of rows of the whole batch's mask, for each kind of batch?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from lossscope.core.batches import Sampling
from lossscope.core.relations import Relations
from lossscope.core.sides import QUERY_DOCUMENT
from lossscope.core.types import DIRECTIONS, Direction, SameImage
from lossscope.engine.blocks.sparse_mask import SparseMask

RANDOM = np.random.default_rng(0)
PAIRS = np.unique(np.stack([RANDOM.integers(0, 12, 40), RANDOM.integers(0, 20, 40)], 1), axis=0)
TWO_SIDES = Relations(12, 20, PAIRS, QUERY_DOCUMENT)
MINED = Relations(12, 20, PAIRS, QUERY_DOCUMENT, negatives=RANDOM.integers(-1, 20, (12, 2)))
CAPTIONS = Relations.of_captions(np.repeat(np.arange(9), 3), 9)
CLASSES = Relations.of_labels(RANDOM.integers(0, 4, 15))


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("same_image", ["keep", "mask"])
@pytest.mark.parametrize(
    ("relations", "mode"),
    [
        (CAPTIONS, "pairs"), (CAPTIONS, "images"), (CAPTIONS, "views"), (TWO_SIDES, "pairs"), (TWO_SIDES, "groups"),
        (MINED, "pairs"), (MINED, "groups"), (CLASSES, "classes"),
    ],
)  # fmt: skip
def test_rows_of_the_whole_mask(relations: Relations, mode: Any, same_image: SameImage, direction: Direction) -> None:
    batch = next(Sampling(mode, None, shuffle=False).batches(relations))
    if batch.is_one_set and direction == "t2i":
        return
    whole = SparseMask.of(batch, relations, same_image)
    whole = whole if direction == "i2t" else whole.t()
    for size in (1, whole.queries // 2, whole.queries):
        sample = np.sort(RANDOM.permutation(whole.queries)[:size])
        sampled = SparseMask.of(batch, relations, same_image, sample, direction)
        expected, actual = whole.mask(torch.from_numpy(sample)), sampled.mask(torch.arange(size))
        assert torch.equal(actual.match, expected.match) and torch.equal(actual.valid, expected.valid)
        assert torch.equal(sampled.number_of_negatives, whole.number_of_negatives[sample])
        assert sampled.direction == direction and (sampled.queries, sampled.candidates) == (size, whole.candidates)
