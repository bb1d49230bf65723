"""Similarities of positives and hardest negatives."""

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
from tests.each import each

Oracle = Callable[[str], ModuleType]


@each("many", [False, True], "seed", range(5))
def test_the_statistics_equal_the_oracle(seed: int, many: bool, lab: Any, oracle: Oracle) -> None:
    batches = lab.random_batches(seed, many=many)
    actual = lab.measure("similarity", batches)
    for b, batch in enumerate(batches.single_batches()):
        expected = oracle("probes_ranks").similarity(batch.S[0].numpy(), batch.match[0].numpy(), batch.valid[0].numpy())
        assert {name: values[b] for name, values in actual.items()} == pytest.approx(expected, abs=1e-12)


@each("many", [False, True])
def test_stacks_and_panels_give_the_same_results(many: bool, lab: Any) -> None:
    lab.assert_invariant_to_cuts("similarity", lab.random_batches(many=many))


def test_by_hand(lab: Any) -> None:
    batch = lab.random_batches(k=1, q=2, c=3, d=3, gaps=False)
    S = torch.tensor([[0.5, 0.25, 0.75], [0.0, 0.875, 0.375]], dtype=torch.float64)
    batch = replace(batch, queries=S[None], candidates=torch.eye(3, dtype=torch.float64)[None])
    actual = lab.columns(lab.run("similarity", batch))
    assert actual["positive"].tolist() == [0.5, 0.875]
    assert actual["hardest"].tolist() == [0.75, 0.375]
    assert actual["margin"].tolist() == [-0.25, 0.5]
    assert actual["inverted"].tolist() == [1, 0]
    assert lab.measure("similarity", batch)["inverted"] == [0.5]


@given(queries=st.permutations(range(6)), candidates=st.permutations(range(7)))
def test_the_order_of_a_batch_does_not_matter(queries: list[int], candidates: list[int], lab: Any) -> None:
    batches = lab.random_batches(many=True)
    lab.assert_same(lab.measure("similarity", batches.permute(queries, candidates)), lab.measure("similarity", batches))


def test_degenerate_batches_give_no_infinity(degenerate: Any, lab: Any, request: pytest.FixtureRequest) -> None:
    actual = lab.measure("similarity", degenerate)
    assert not any(np.isinf(values).any() for values in actual.values())
    skipped = "all skipped" in request.node.name
    assert all(np.isnan(values).all() == skipped for values in actual.values())


def test_it_runs_once_for_all_objectives(lab: Any) -> None:
    actual = lab.run("similarity", lab.random_batches())
    assert actual.objective is None
    assert len(lab.measure("similarity", lab.random_batches(), "triplet")["s_pos"]) == 3
