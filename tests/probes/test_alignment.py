"""Squared distances of queries and their positives."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

Oracle = Callable[[str], ModuleType]


@pytest.mark.parametrize("many", [False, True])
def test_the_number_is_that_of_a_walk_along_each_row(many: bool, lab: Any, oracle: Oracle) -> None:
    batches = lab.drawn(many=many)
    found = lab.ask("alignment", batches)
    for b, one in enumerate(batches.alone()):
        expected = oracle("probes_ranks").alignment(one.S[0].numpy(), one.match[0].numpy(), one.valid[0].numpy())
        assert {name: v[b] for name, v in found.items()} == pytest.approx(expected, rel=1e-12)


def test_it_is_a_squared_distance_of_unit_vectors(lab: Any) -> None:
    one = lab.drawn(k=1, gaps=False)
    apart = one.queries[0] - one.candidates[0, :6]
    assert lab.columns(lab.found("alignment", one))["alignment"] == pytest.approx(apart.square().sum(1).numpy())


@pytest.mark.parametrize("many", [False, True])
def test_stacks_and_panels_change_nothing(many: bool, lab: Any) -> None:
    lab.however_cut("alignment", lab.drawn(many=many))


@given(queries=st.permutations(range(6)), candidates=st.permutations(range(7)))
def test_the_order_of_a_batch_does_not_matter(queries: list[int], candidates: list[int], lab: Any) -> None:
    batches = lab.drawn(many=True)
    lab.same(lab.ask("alignment", batches.in_order(queries, candidates)), lab.ask("alignment", batches))


def test_degenerate_batches_give_no_infinity(degenerate: Any, lab: Any, request: pytest.FixtureRequest) -> None:
    (values,) = lab.ask("alignment", degenerate).values()
    expected = {"all skipped": np.nan, "collapsed": 0, "separated": 0, "opposite": 4}
    assert not np.isinf(values).any()
    for name, value in expected.items():
        if name in request.node.name:
            assert values == pytest.approx(value, abs=1e-5, nan_ok=True)
