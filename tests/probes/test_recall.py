"""Ranks within a batch."""

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

from lossscope.retrieval.metrics import retrieve
from tests.each import each

Oracle = Callable[[str], ModuleType]


@each("many", [False, True], "seed", range(5))
def test_the_statistics_equal_the_oracle(seed: int, many: bool, lab: Any, oracle: Oracle) -> None:
    batches = lab.random_batches(seed, q=7, c=12, many=many)
    actual = lab.measure("recall", batches)
    for b, batch in enumerate(batches.single_batches()):
        expected = oracle("probes_ranks").recall(batch.S[0].numpy(), batch.match[0].numpy(), batch.valid[0].numpy())
        assert {name: values[b] for name, values in actual.items()} == pytest.approx(expected, abs=1e-12)


@each("k", [1, 3], "images", [20, 21])
def test_a_batch_of_a_whole_split_has_the_recall_of_the_protocol(images: int, k: int, lab: Any) -> None:
    batch = lab.random_batches(k=1, q=images, c=images * k, d=3, gaps=False)
    owner = np.repeat(np.arange(images), k)
    match = torch.from_numpy(np.arange(images)[:, None] == owner[None, :])[None]
    batch = replace(batch, match=match, valid=torch.ones_like(match))
    expected = retrieve(batch.S[0], owner)[0].statistics()
    actual = lab.measure("recall", batch)
    assert {name: float(values[0]) for name, values in actual.items()} == pytest.approx(
        {name: expected[name] for name in actual}
    )


@each("many", [False, True])
def test_stacks_and_panels_give_the_same_results(many: bool, lab: Any) -> None:
    lab.assert_invariant_to_cuts("recall", lab.random_batches(many=many))


def test_ties_are_counted_and_do_not_change_the_rank(lab: Any) -> None:
    S = torch.tensor([[0.5, 0.5, 0.75], [0.0, 0.875, 0.375]], dtype=torch.float64)
    batch = lab.random_batches(k=1, q=2, c=3, d=3, gaps=False)
    batch = replace(batch, queries=S[None], candidates=torch.eye(3, dtype=torch.float64)[None])
    assert lab.columns(lab.run("recall", batch))["rank"].tolist() == [2, 1]
    actual = lab.measure("recall", batch)
    assert (actual["ties"], actual["R@1"], actual["R@5"], actual["MRR"]) == (1, 50, 100, 0.75)


@given(queries=st.permutations(range(6)), candidates=st.permutations(range(7)))
def test_the_order_of_a_batch_does_not_matter(queries: list[int], candidates: list[int], lab: Any) -> None:
    batches = lab.random_batches(many=True)
    lab.assert_same(lab.measure("recall", batches.permute(queries, candidates)), lab.measure("recall", batches))


def test_degenerate_batches_give_no_infinity(degenerate: Any, lab: Any, request: pytest.FixtureRequest) -> None:
    actual = lab.measure("recall", degenerate)
    assert not any(np.isinf(values).any() for values in actual.values())
    if "all skipped" in request.node.name:
        assert actual.pop("ties").tolist() == [0, 0]
        assert all(np.isnan(values).all() for values in actual.values())
    if "collapsed" in request.node.name:
        assert actual["R@1"].tolist() == [100, 100]
        assert actual["ties"].tolist() == [6, 6]
