"""Do batches have P classes with K items each?"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lossscope.core.batches import Sampling
from lossscope.core.relations import Relations
from lossscope.errors import InputError
from tests.each import each

LABELS = st.lists(st.integers(0, 6), min_size=2, max_size=60)


def sampled(labels: list[int], classes: int, per_class: int, seed: int = 0, **more: object) -> list[np.ndarray]:
    sampling = Sampling("classes", classes * per_class, seed, per_class=per_class, **more)  # type: ignore[arg-type]
    return [batch.images for batch in sampling.batches(Relations.of_labels(np.array(labels, np.int64)))]


@given(LABELS, st.integers(2, 4), st.integers(2, 4), st.booleans())
def test_batches_have_p_classes_of_k_items(labels: list[int], classes: int, per_class: int, shuffle: bool) -> None:
    batches = sampled(labels, classes, per_class, shuffle=shuffle)
    rows = np.concatenate([np.zeros(0, np.int64), *batches])
    assert len(set(rows.tolist())) == len(rows), "an item is in one batch"
    for batch in batches:
        sizes = Counter(labels[row] for row in batch)
        assert 2 <= len(sizes) <= classes
        assert all(2 <= size <= per_class for size in sizes.values())
    groups = Counter(label for label, n in Counter(labels).items() for k in range(0, n, per_class) if n - k > 1)
    full = [batch for batch in batches if len({labels[row] for row in batch}) == classes]
    if len(groups) == classes and len(set(groups.values())) == 1:
        assert len(full) == len(batches) == next(iter(groups.values()))


def test_equal_classes_fill_every_batch() -> None:
    labels = list(np.repeat(np.arange(12), 8))
    batches = sampled(labels, 4, 4, seed=3)
    assert len(batches) == 6
    assert all(len(batch) == 16 for batch in batches)
    assert sorted(np.concatenate(batches).tolist()) == list(range(96))
    assert np.array_equal(batches, sampled(labels, 4, 4, seed=3))
    assert not np.array_equal(batches, sampled(labels, 4, 4, seed=4))


def test_one_large_class_takes_no_time() -> None:
    labels = [0] * 200_000 + list(range(1, 1000)) * 2
    assert len(sampled(labels, 4, 4)) > 100


def test_a_last_batch_of_fewer_classes_can_be_left_out() -> None:
    labels = list(np.repeat(np.arange(5), 2))
    assert [len(batch) for batch in sampled(labels, 4, 2)] == [8]  # a single class has no negatives
    assert [len(batch) for batch in sampled([*labels, 9, 9], 4, 2)] == [8, 4]
    assert [len(batch) for batch in sampled([*labels, 9, 9], 4, 2, drop_last=True)] == [8]


def test_everything_in_one_batch_has_every_item() -> None:
    sampling = Sampling("classes", None)
    (batch,) = sampling.batches(Relations.of_labels(np.array([0, 1, 0])))
    assert batch.images.tolist() == [0, 1, 2]


@each("size, per_class, says", [
    (10, 4, "batch size must be a multiple of --per-class 4, 2 classes or more; got 10"),
    (4, 4, "2 classes or more; got 4"),
    (8, 1, "items of a class must be at least 2"),
])  # fmt: skip
def test_sizes_that_do_not_fit_are_refused(size: int, per_class: int, says: str) -> None:
    with pytest.raises(InputError, match=says):
        Sampling("classes", size, per_class=per_class)


def test_modes_of_other_relations_are_refused() -> None:
    labelled = Relations.of_labels(np.array([0, 0, 1, 1]))
    with pytest.raises(InputError, match="--sampling must be classes for items of one labelled set"):
        list(Sampling("pairs", 2).batches(labelled))
    with pytest.raises(InputError, match="--sampling classes is for one labelled set; got image/caption pairs"):
        list(Sampling("classes", 8).batches(np.arange(4)))
