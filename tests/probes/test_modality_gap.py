"""The distance between the means of the two sides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lossscope.errors import InputError
from tests.each import each

Oracle = Callable[[str], ModuleType]


@each("seed", range(3))
def test_the_statistics_equal_the_oracle(seed: int, lab: Any, oracle: Oracle) -> None:
    batches = lab.random_batches(seed)
    batches = replace(batches, candidates=2 * batches.candidates)  # any length will do
    actual = lab.measure("modality_gap", batches)
    for b, batch in enumerate(batches.single_batches()):
        expected = oracle("probes_vectors").modality_gap(batch.queries[0].numpy(), batch.candidates[0].numpy())
        assert {name: v[b] for name, v in actual.items()} == pytest.approx(expected, rel=1e-12)


def test_stacks_and_panels_give_the_same_results(lab: Any) -> None:
    lab.assert_invariant_to_cuts("modality_gap", lab.random_batches())


def test_both_directions_give_the_same(lab: Any) -> None:
    batch = lab.random_batches(c=6, gaps=False)
    other = replace(batch, queries=batch.candidates, candidates=batch.queries, direction="t2i")
    lab.assert_same(lab.measure("modality_gap", batch), lab.measure("modality_gap", other))


@given(queries=st.permutations(range(6)), candidates=st.permutations(range(7)))
def test_the_order_of_a_batch_does_not_matter(queries: list[int], candidates: list[int], lab: Any) -> None:
    batches = lab.random_batches()
    lab.assert_same(
        lab.measure("modality_gap", batches.permute(queries, candidates)), lab.measure("modality_gap", batches)
    )


def test_degenerate_batches_give_no_infinity(degenerate: Any, lab: Any, request: pytest.FixtureRequest) -> None:
    actual = lab.measure("modality_gap", degenerate)
    assert not any(np.isinf(values).any() for values in actual.values())
    if "collapsed" in request.node.name:
        assert actual["gap"] == pytest.approx([0, 0], abs=1e-6)
        assert actual["gap_cosine"] == pytest.approx([1, 1])


def test_a_mean_of_zero_has_no_direction(lab: Any) -> None:
    batch = lab.random_batches(k=1, q=2, c=2, d=2, gaps=False)
    around = torch.tensor([[[1.0, 0.0], [-1.0, 0.0]]])
    actual = lab.measure("modality_gap", replace(batch, queries=around, candidates=around))
    assert actual["gap"].tolist() == [0]
    assert np.isnan(actual["gap_cosine"]).all()


def test_similarities_alone_raise(lab: Any) -> None:
    rows = replace(lab.random_batches().rows(), queries=None, candidates=None)
    with pytest.raises(InputError, match=r"this probe needs embeddings, and the source has similarities only"):
        lab.measure("modality_gap", rows)
