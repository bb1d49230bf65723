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

Oracle = Callable[[str], ModuleType]


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_the_numbers_are_those_of_a_walk_along_each_row(seed: int, many: bool, lab: Any, oracle: Oracle) -> None:
    batches = lab.drawn(seed, many=many)
    found = lab.ask("similarity", batches)
    for b, one in enumerate(batches.alone()):
        expected = oracle("probes_ranks").similarity(one.S[0].numpy(), one.match[0].numpy(), one.valid[0].numpy())
        assert {name: values[b] for name, values in found.items()} == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("many", [False, True])
def test_stacks_and_panels_change_nothing(many: bool, lab: Any) -> None:
    lab.however_cut("similarity", lab.drawn(many=many))


def test_by_hand(lab: Any) -> None:
    one = lab.drawn(k=1, q=2, c=3, d=3, gaps=False)
    S = torch.tensor([[0.5, 0.25, 0.75], [0.0, 0.875, 0.375]], dtype=torch.float64)
    one = replace(one, queries=S[None], candidates=torch.eye(3, dtype=torch.float64)[None])
    found = lab.columns(lab.found("similarity", one))
    assert found["positive"].tolist() == [0.5, 0.875]
    assert found["hardest"].tolist() == [0.75, 0.375]
    assert found["margin"].tolist() == [-0.25, 0.5]
    assert found["inverted"].tolist() == [1, 0]
    assert lab.ask("similarity", one)["inverted"] == [0.5]


@pytest.mark.slow
@given(queries=st.permutations(range(6)), candidates=st.permutations(range(7)))
def test_the_order_of_a_batch_does_not_matter(queries: list[int], candidates: list[int], lab: Any) -> None:
    batches = lab.drawn(many=True)
    lab.same(lab.ask("similarity", batches.in_order(queries, candidates)), lab.ask("similarity", batches))


def test_degenerate_batches_give_no_infinity(degenerate: Any, lab: Any, request: pytest.FixtureRequest) -> None:
    found = lab.ask("similarity", degenerate)
    assert not any(np.isinf(values).any() for values in found.values())
    skipped = "all skipped" in request.node.name
    assert all(np.isnan(values).all() == skipped for values in found.values())


def test_it_is_asked_once_whatever_the_objectives(lab: Any) -> None:
    found = lab.found("similarity", lab.drawn())
    assert found.objective is None
    assert len(lab.ask("similarity", lab.drawn(), "triplet")["s_pos"]) == 3
