"""Are batches a function of (seed, epoch), with each item once, in an order that this test fixes?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lossscope.core.batches import Batch, Sampling, shuffle_rows
from lossscope.core.relations import Relations
from lossscope.core.sides import ITEM_PROXY, QUERY_DOCUMENT
from lossscope.errors import InputError
from tests.each import each

OWNERS = np.repeat(np.arange(10), 3)
UNEVEN = np.array([2, 0, 2, 5, 0, 2])  # images 1, 3 and 4 have no caption
FROZEN = {
    (0, 0): [0, 2, 11, 9, 1, 8, 5, 4, 3, 10, 6, 7],
    (0, 1): [5, 3, 7, 8, 11, 2, 4, 1, 10, 0, 6, 9],
    (7, 0): [8, 4, 1, 6, 3, 2, 11, 7, 5, 9, 10, 0],
}


def captions_of(batches: list[Batch]) -> list[int]:
    return [int(row) for batch in batches for row in batch.captions]


@each("seed, epoch", FROZEN)
def test_the_order_never_changes(seed: int, epoch: int) -> None:
    assert shuffle_rows(12, seed, epoch).tolist() == FROZEN[seed, epoch]


@given(st.integers(0, 300), st.integers(-(2**63), 2**63), st.integers(0, 1000))
def test_shuffled_is_a_permutation_for_any_seed(n: int, seed: int, epoch: int) -> None:
    assert sorted(shuffle_rows(n, seed, epoch).tolist()) == list(range(n))


@each("size", [2, 7, 30, 100, None], "epoch", [0, 1])
def test_each_epoch_has_every_pair_once(size: int | None, epoch: int) -> None:
    sampling = Sampling(batch_size=size)
    batches = list(sampling.batches(OWNERS, epoch))
    assert sorted(captions_of(batches)) == list(range(30))
    assert len(batches) == sampling.count(OWNERS)
    for batch in batches:
        assert batch.mode == "pairs"
        assert np.array_equal(batch.images, OWNERS[batch.captions])
        assert size is None or len(batch.captions) <= size


def test_the_order_depends_on_seed_and_epoch_and_on_nothing_else() -> None:
    def order(epoch: int = 0, **options: Any) -> list[int]:
        return captions_of(list(Sampling(**options).batches(OWNERS, epoch)))

    assert order() == order(batch_size=7)
    assert order(seed=3) == order(seed=3)
    assert len({tuple(order(seed=seed, epoch=epoch)) for seed in (0, 1) for epoch in (0, 1)}) == 4
    assert order(shuffle=False) == list(range(30))


@each("mode", ["pairs", "images"], "start", [0, 1, 3, 4, 9])
def test_start_resumes_an_epoch(mode: Any, start: int) -> None:
    sampling = Sampling(mode, batch_size=8 if mode == "pairs" else 3)
    whole, rest = list(sampling.batches(OWNERS, 2)), list(sampling.batches(OWNERS, 2, start))
    assert [b.captions.tolist() for b in rest] == [b.captions.tolist() for b in whole[start:]]


@each("drop_last, sizes", [(False, [8, 8, 8, 6]), (True, [8, 8, 8])])
def test_the_short_last_batch_is_kept_or_dropped(drop_last: bool, sizes: list[int]) -> None:
    sampling = Sampling(batch_size=8, drop_last=drop_last)
    assert [len(batch.captions) for batch in sampling.batches(OWNERS)] == sizes
    assert sampling.count(OWNERS) == len(sizes)


def test_dropping_the_last_batch_of_a_short_split_leaves_none() -> None:
    assert list(Sampling(batch_size=31, drop_last=True).batches(OWNERS)) == []


def test_images_come_with_all_their_captions_in_file_order() -> None:
    batches = list(Sampling("images", batch_size=2, shuffle=False).batches(UNEVEN))
    assert [batch.images.tolist() for batch in batches] == [[0, 2], [5]]
    assert [batch.captions.tolist() for batch in batches] == [[1, 4, 0, 2, 5], [3]]


@each("size", [2, 4, None])
def test_each_epoch_of_images_has_every_image_once(size: int | None) -> None:
    batches = list(Sampling("images", batch_size=size, seed=1).batches(OWNERS, 3))
    assert sorted(row for batch in batches for row in batch.images.tolist()) == list(range(10))
    assert sorted(captions_of(batches)) == list(range(30))
    for batch in batches:
        assert set(OWNERS[batch.captions].tolist()) == set(batch.images.tolist())


def test_captions_first_keeps_the_first_caption_of_each_image() -> None:
    sampling = Sampling(captions="first", batch_size=None, shuffle=False)
    assert captions_of(list(sampling.batches(OWNERS))) == list(range(0, 30, 3))
    assert sampling.caption_rows(UNEVEN).tolist() == [0, 1, 3]
    assert [b.captions.tolist() for b in Sampling("images", None, captions="first", shuffle=False).batches(UNEVEN)] == [
        [1, 0, 3]
    ]


def test_pairs_are_masked_on_the_diagonal_and_images_by_owner() -> None:
    pairs = Batch(np.array([4, 4, 7]), np.array([12, 13, 21]), "pairs")
    assert pairs.mask(OWNERS).match.tolist() == np.eye(3, dtype=bool).tolist()
    assert not pairs.mask(OWNERS, "mask").valid[0, 1]
    images = Batch(np.array([1, 0]), np.array([3, 4, 5, 0, 1, 2]), "images")
    assert images.mask(OWNERS).match.tolist() == [[True] * 3 + [False] * 3, [False] * 3 + [True] * 3]


@each("size", [1, 0, -3])
def test_a_batch_below_two_raises(size: int) -> None:
    with pytest.raises(InputError, match=rf"at least 2 .*; got {size}"):
        Sampling(batch_size=size)


def test_single_has_every_image_once_with_a_newly_drawn_caption() -> None:
    owner = np.repeat(np.arange(6), 4)
    sampling = Sampling("single", 4, seed=3)
    assert sampling.count(owner) == 2
    epochs = [list(sampling.batches(owner, epoch)) for epoch in range(3)]
    for batches in epochs:
        images = np.concatenate([b.images for b in batches])
        captions = np.concatenate([b.captions for b in batches])
        assert sorted(images.tolist()) == list(range(6))
        assert (owner[captions] == images).all()
        assert batches[0].mask(owner).match.equal(torch.eye(4, dtype=torch.bool))
    drawn = [sorted(np.concatenate([b.captions for b in batches]).tolist()) for batches in epochs]
    assert drawn[0] != drawn[1] != drawn[2]
    repeated = [b.captions.tolist() for b in sampling.batches(owner, 1)]
    assert repeated == [b.captions.tolist() for b in epochs[1]]


@each("mode", ["images", "groups"], "captions", ["all", "first"])
def test_everything_in_one_batch_is_a_batch_of_that_size(mode: Any, captions: Any) -> None:
    random = np.random.default_rng(0)
    pairs = np.unique(np.stack([random.integers(0, 12, 30), random.integers(0, 15, 30)], 1), axis=0)
    shared = Relations(12, 15, random.permutation(pairs), QUERY_DOCUMENT, negatives=random.integers(-1, 15, (12, 2)))
    for relations in (shared, Relations.of_captions(random.integers(0, 9, 20), 9)):
        (whole,) = Sampling(mode, None, shuffle=False, captions=captions).batches(relations)
        (same,) = Sampling(mode, 100, shuffle=False, captions=captions).batches(relations)
        for name in ("images", "captions", "negative_of"):
            assert np.array_equal(getattr(whole, name), getattr(same, name))
        assert not list(Sampling(mode, None, captions=captions).batches(relations, start=1))


def test_items_meet_every_class_vector_also_those_without_an_item_and_are_the_only_queries() -> None:
    labels = np.array([0, 2, 2, 0, 1, 2])
    relations = Relations(6, 5, np.stack([np.arange(6), labels], 1), ITEM_PROXY)
    batches = list(Sampling("proxies", 4, seed=1).batches(relations))
    assert sorted(int(row) for batch in batches for row in batch.images) == list(range(6))
    for batch in batches:
        assert batch.captions.tolist() == list(range(5)) and batch.directions == ("i2t",)
        mask = batch.mask(relations)
        assert mask.all_valid
        assert mask.match.to(torch.uint8).argmax(1).tolist() == labels[batch.images].tolist()
    (whole,) = Sampling("proxies", None).batches(relations)
    assert whole.images.tolist() == list(range(6)) and whole.captions.tolist() == list(range(5))
    assert Sampling("proxies", 4).count(relations) == 2


def test_mined_negatives_are_refused_where_every_class_vector_is_a_candidate_already() -> None:
    mined = Relations(2, 3, np.array([[0, 0], [1, 1]]), QUERY_DOCUMENT, negatives=np.array([[2], [2]]))
    with pytest.raises(InputError, match="all documents as candidates, mined or not: add --negatives none"):
        Sampling("proxies", 2).count(mined)
    assert Sampling("proxies", 2, negatives="none").count(mined) == 1
