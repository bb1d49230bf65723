"""How often each candidate is the hardest negative."""

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


@pytest.mark.parametrize(("q", "c"), [(6, 7), (30, 4), (9, 250)])
@pytest.mark.parametrize("many", [False, True])
def test_the_numbers_are_those_of_a_walk_along_each_row(q: int, c: int, many: bool, lab: Any, oracle: Oracle) -> None:
    batches = lab.drawn(q=q, c=c, many=many)
    found = lab.ask("hubness", batches)
    for b, one in enumerate(batches.alone()):
        expected = oracle("probes_ranks").hubness(one.S[0].numpy(), one.match[0].numpy(), one.valid[0].numpy())
        assert {name: v[b] for name, v in found.items()} == pytest.approx(expected, rel=1e-12, nan_ok=True)


def test_by_hand(lab: Any) -> None:
    one = lab.drawn(k=1, q=4, c=4, d=4, gaps=False)
    S = torch.tensor([[9, 1, 8, 0], [0, 9, 8, 1], [8, 1, 9, 0], [0, 1, 8, 9]], dtype=torch.float64) / 10
    one = replace(one, queries=S[None], candidates=torch.eye(4, dtype=torch.float64)[None])
    found = lab.ask("hubness", one)  # chosen: 1, 0, 3, 0
    assert (found["hub_max_count"], found["never_hardest"], found["hub_share"]) == (3, 0.5, 0.75)
    assert found["hub_skewness"] == pytest.approx([(8 - 1 - 1) / 4 / 1.5**1.5])


@pytest.mark.parametrize("many", [False, True])
def test_stacks_and_panels_change_nothing(many: bool, lab: Any) -> None:
    lab.however_cut("hubness", lab.drawn(many=many))


@given(queries=st.permutations(range(6)), candidates=st.permutations(range(7)))
def test_the_order_of_a_batch_does_not_matter(queries: list[int], candidates: list[int], lab: Any) -> None:
    batches = lab.drawn(many=True)
    lab.same(lab.ask("hubness", batches.in_order(queries, candidates)), lab.ask("hubness", batches))


def test_degenerate_batches_give_no_infinity(degenerate: Any, lab: Any, request: pytest.FixtureRequest) -> None:
    found = lab.ask("hubness", degenerate)
    assert not any(np.isinf(values).any() for values in found.values())
    if "all skipped" in request.node.name:
        assert all(np.isnan(values).all() for values in found.values())
    if "one negative" in request.node.name:
        assert np.isnan(found["hub_skewness"]).all()
        assert found["hub_share"].tolist() == [0.5, 0.5]
