"""With probabilities of 0 and 1, are rates, precision, recall and shares of weight those by hand and by the truth?"""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
import torch

from lossscope.audit.estimate.accuracy import precision, recall
from lossscope.audit.estimate.calibration import Calibration
from lossscope.audit.estimate.rates import (
    BatchPairs,
    estimates,
    mean_rate,
    negative_weights,
    per_query,
    sampled_rate,
)
from lossscope.audit.search.random_batches import pairs_of, random_batches
from lossscope.core.batches import Batch
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.similarity import Mask, pair_mask
from lossscope.datasets.scenes import Scenes
from lossscope.errors import InputError
from lossscope.objectives.base import Objective, Traits
from lossscope.registry import build
from tests.audit.small import certain, source, split, vectors


def three_by_two() -> BatchPairs:
    """Return two batches of 3 negatives each; 2 and 0 of them match."""
    negative = [np.array([[False, True], [True, True]]), np.array([[True, True], [True, False]])]
    Z = np.array([[1.0], [1.0], [-1.0], [-1.0], [-1.0], [-1.0]])
    batches = [Batch(np.arange(2), np.arange(2), "pairs")] * 2
    return BatchPairs(batches, negative, Z, np.zeros(6, np.int64))


def test_rates_by_hand() -> None:
    pairs = three_by_two()
    p = pairs.probabilities(certain())
    assert p.tolist() == [1, 1, 0, 0, 0, 0]
    assert mean_rate(p) == pytest.approx(2 / 6)
    assert per_query(pairs, certain()) == pytest.approx(2 / 4)
    blocks = pairs.of_batches(np.arange(1.0, 7.0))
    assert [block.tolist() for block in blocks] == [[[0, 1], [2, 3]], [[4, 5], [6, 0]]]


def test_queries_with_one_are_one_less_the_product() -> None:
    half = Calibration(("a",), np.zeros(2))
    assert per_query(three_by_two(), half) == pytest.approx(np.mean([0.5, 0.75, 0.75, 0.5]))


def test_a_copy_matches_whatever_its_signals_say() -> None:
    pairs = three_by_two()
    copies = BatchPairs(pairs.batches, pairs.negative, pairs.Z, np.array([0, 0, 0, 1, 0, 0]))
    assert copies.probabilities(certain()).tolist() == [1, 1, 0, 1, 0, 0]


def test_precision_and_recall_by_hand() -> None:
    p = np.array([0.9, 0.5, 0.1, 0.1])
    above = p >= 0.5
    assert precision(above)(p) == pytest.approx(0.7)
    assert recall(above)(p) == pytest.approx(1.4 / 1.6)
    assert np.isnan(precision(p > 1)(p))
    assert recall(p > 1)(p) == 0
    assert np.isnan(recall(above)(np.zeros(4)))


def test_intervals_are_of_the_draws_and_of_chance() -> None:
    pairs = three_by_two()
    draws = np.stack([np.linspace(-2, 2, 101), np.zeros(101)], 1)
    drawn = Calibration(("a",), np.zeros(2), draws)
    [rate, chance] = estimates(pairs, drawn, [mean_rate, sampled_rate()])
    assert rate.value == pytest.approx(0.5)
    assert rate.low == pytest.approx(1 / (1 + np.exp(1.9)), abs=0.01)
    assert rate.high == pytest.approx(1 / (1 + np.exp(-1.9)), abs=0.01)
    assert chance.low is not None
    assert rate.low is not None
    assert chance.low < rate.low  # six pairs say little
    assert estimates(pairs, Calibration(("a",), np.zeros(2)), [mean_rate])[0].low is None


def test_what_is_not_defined_has_no_interval() -> None:
    drawn = Calibration(("a",), np.zeros(2), np.zeros((3, 2)))
    [undefined] = estimates(three_by_two(), drawn, [precision(np.zeros(6, bool))])
    assert np.isnan(undefined.value)
    assert (undefined.low, undefined.high) == (None, None)


def scenes(n: int = 40) -> tuple[SplitEmbeddings, np.ndarray]:
    """Return random embeddings of scenes, and (M, N) whether a caption is true of an image."""
    data = Scenes(train=n, val=2, test=2, size=16, ambiguity=0.6, captions=2).split("train")
    embedded = source(vectors(n, 0), vectors(2 * n, 1), data.caption_image)
    return embedded, data.truth()


@pytest.mark.parametrize("spec", ["ntxent", "triplet:margin=0.5"])
def test_with_perfect_probabilities_the_share_is_that_of_the_truth(spec: str) -> None:
    embedded, truth = scenes()
    batches = random_batches(embedded.relations, 16, 0)[:3]
    pairs, masks = pairs_of(batches, embedded.relations)
    Z = np.where(truth[pairs.right, pairs.left], 1.0, -1.0)[:, None]
    sample = BatchPairs(batches, masks, Z, np.zeros(len(pairs), np.int64))
    weights = negative_weights(sample, embedded, build("objectives", spec), spec)
    objective, on_false, on_all = build("objectives", spec), 0.0, 0.0
    for batch in batches:
        S = (embedded.images[batch.images] @ embedded.captions[batch.captions].T).double()  # type: ignore[index]
        mask = pair_mask(range(len(S)))
        W = objective(S, mask).W.abs() + objective(S.T, mask).W.abs().T
        W[embedded.relations.is_positive(batch.images, batch.captions)] = 0
        on_all += float(W.sum())
        on_false += float(W[torch.from_numpy(truth[batch.captions][:, batch.images].T)].sum())
    share = weights.share(sample.probabilities(certain()))
    assert share == pytest.approx(on_false / on_all, rel=1e-4)
    assert 0 < share < 1


def identity() -> tuple[BatchPairs, SplitEmbeddings]:
    """Return six pairs with perfect positives, and a similarity of 0 of all negatives."""
    embedded = source(np.eye(6, dtype=np.float32), np.eye(6, dtype=np.float32), np.arange(6))
    batches = random_batches(embedded.relations, 6, 0)
    _, masks = pairs_of(batches, embedded.relations)
    n = sum(int(mask.sum()) for mask in masks)
    return BatchPairs(batches, masks, np.zeros((n, 1)), np.zeros(n, np.int64)), embedded


def test_an_objective_without_weight_on_negatives_is_refused() -> None:
    with pytest.raises(InputError, match="must have weights on negatives"):
        negative_weights(*identity(), build("objectives", "triplet:margin=0.2"), "triplet")


class NaNWeights:
    """An objective of the user that divides by 0 at its first negative."""

    traits = Traits()

    def __call__(self, S: torch.Tensor, mask: Mask) -> SimpleNamespace:
        """Return weights of 1, and NaN at one negative."""
        W = torch.ones_like(S)
        W[0, 1] = torch.nan
        return SimpleNamespace(W=W)


def test_weights_that_are_not_finite_are_refused() -> None:
    """NaN counted as 0, so that the share was that of the other weights."""
    sample, embedded = identity()
    with pytest.raises(InputError, match=r"nan must have finite weights on negatives; \d+ of \d+ are not"):
        negative_weights(sample, embedded, cast("Objective", NaNWeights()), "nan")


def test_the_split_of_the_tests_has_a_picture_without_captions() -> None:
    assert 4 not in split().relations.caption_image
