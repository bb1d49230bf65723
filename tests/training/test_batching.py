"""Do passes over the split follow each other, and can an epoch begin at any step?"""

from __future__ import annotations

import numpy as np

from lossscope.registry import build
from lossscope.training.batching import epoch_batches, sampling_of
from lossscope.training.recipe import Recipe


def test_an_epoch_of_stated_steps_goes_through_the_split_and_begins_again() -> None:
    owners = np.arange(10)
    sampling = sampling_of(Recipe(objective="triplet", batch_size=4), build("objectives", "triplet"))
    whole = [batch.captions.tolist() for epoch in range(2) for batch in epoch_batches(sampling, owners, epoch, 0, 5)]
    assert [len(part) for part in whole] == [4, 4, 2] * 3 + [4]
    passes = [sorted(row for part in whole[start : start + 3] for row in part) for start in (0, 3)]
    assert passes == [list(range(10))] * 2
    assert whole[:3] != whole[3:6]
    assert [batch.captions.tolist() for batch in epoch_batches(sampling, owners, 1, 2, 5)] == whole[7:]


def test_without_stated_steps_an_epoch_is_one_pass() -> None:
    owners = np.arange(10)
    sampling = sampling_of(Recipe(objective="triplet", batch_size=4), build("objectives", "triplet"))
    assert [len(batch.captions) for batch in epoch_batches(sampling, owners, 0, 0, 0)] == [4, 4, 2]
    assert [len(batch.captions) for batch in epoch_batches(sampling, owners, 0, 2, 0)] == [2]
