"""How evenly queries are spread over the sphere."""

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


@pytest.mark.parametrize(("q", "d"), [(2, 3), (6, 4), (12, 20)])
def test_the_number_is_that_of_all_pairs(q: int, d: int, lab: Any, oracle: Oracle) -> None:
    batches = lab.drawn(q=q, c=q + 1, d=d, gaps=False)
    batches = replace(batches, queries=2 * batches.queries)  # any length will do
    found = lab.ask("uniformity", batches)["uniformity"]
    for b, one in enumerate(batches.alone()):
        assert found[b] == pytest.approx(oracle("probes_vectors").uniformity(one.queries[0].numpy()), rel=1e-9)


def test_stacks_and_panels_change_nothing(lab: Any) -> None:
    lab.however_cut("uniformity", lab.drawn())


@given(queries=st.permutations(range(6)), candidates=st.permutations(range(7)))
def test_the_order_of_a_batch_does_not_matter(queries: list[int], candidates: list[int], lab: Any) -> None:
    batches = lab.drawn()
    lab.same(lab.ask("uniformity", batches.in_order(queries, candidates)), lab.ask("uniformity", batches))


def test_degenerate_batches_give_no_infinity(degenerate: Any, lab: Any, request: pytest.FixtureRequest) -> None:
    (found,) = lab.ask("uniformity", degenerate).values()
    assert np.isfinite(found).all()
    for name, expected in {"collapsed": 0, "separated": -4, "opposite": -4}.items():
        if name in request.node.name:
            assert found == pytest.approx([expected, expected], abs=1e-5)


def test_one_query_is_no_spread(lab: Any) -> None:
    found = lab.ask("uniformity", lab.drawn(q=1, c=3, gaps=False))
    assert np.isnan(found["uniformity"]).all()


def test_two_queries_opposite_each_other_are_as_far_as_can_be(lab: Any) -> None:
    one = lab.drawn(k=1, q=2, c=2, d=2, gaps=False)
    around = torch.tensor([[[1.0, 0.0], [-1.0, 0.0]]])
    assert lab.ask("uniformity", replace(one, queries=around, candidates=around))["uniformity"] == pytest.approx(
        [-8], abs=1e-3
    )
