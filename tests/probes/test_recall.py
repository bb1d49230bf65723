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

Oracle = Callable[[str], ModuleType]


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_the_numbers_are_those_of_a_walk_along_each_row(seed: int, many: bool, lab: Any, oracle: Oracle) -> None:
    batches = lab.drawn(seed, q=7, c=12, many=many)
    found = lab.ask("recall", batches)
    for b, one in enumerate(batches.alone()):
        expected = oracle("probes_ranks").recall(one.S[0].numpy(), one.match[0].numpy(), one.valid[0].numpy())
        assert {name: values[b] for name, values in found.items()} == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("images", [20, 21])
def test_a_batch_of_a_whole_split_has_the_recall_of_the_protocol(images: int, k: int, lab: Any) -> None:
    one = lab.drawn(k=1, q=images, c=images * k, d=3, gaps=False)
    owner = np.repeat(np.arange(images), k)
    match = torch.from_numpy(np.arange(images)[:, None] == owner[None, :])[None]
    one = replace(one, match=match, valid=torch.ones_like(match))
    expected = retrieve(one.S[0], owner)[0].statistics()
    found = lab.ask("recall", one)
    assert {name: float(values[0]) for name, values in found.items()} == pytest.approx(
        {name: expected[name] for name in found}
    )


@pytest.mark.parametrize("many", [False, True])
def test_stacks_and_panels_change_nothing(many: bool, lab: Any) -> None:
    lab.however_cut("recall", lab.drawn(many=many))


def test_ties_are_told_and_do_not_worsen_the_rank(lab: Any) -> None:
    S = torch.tensor([[0.5, 0.5, 0.75], [0.0, 0.875, 0.375]], dtype=torch.float64)
    one = lab.drawn(k=1, q=2, c=3, d=3, gaps=False)
    one = replace(one, queries=S[None], candidates=torch.eye(3, dtype=torch.float64)[None])
    assert lab.columns(lab.found("recall", one))["rank"].tolist() == [2, 1]
    found = lab.ask("recall", one)
    assert (found["ties"], found["R@1"], found["R@5"], found["MRR"]) == (1, 50, 100, 0.75)


@given(queries=st.permutations(range(6)), candidates=st.permutations(range(7)))
def test_the_order_of_a_batch_does_not_matter(queries: list[int], candidates: list[int], lab: Any) -> None:
    batches = lab.drawn(many=True)
    lab.same(lab.ask("recall", batches.in_order(queries, candidates)), lab.ask("recall", batches))


def test_degenerate_batches_give_no_infinity(degenerate: Any, lab: Any, request: pytest.FixtureRequest) -> None:
    found = lab.ask("recall", degenerate)
    assert not any(np.isinf(values).any() for values in found.values())
    if "all skipped" in request.node.name:
        assert found.pop("ties").tolist() == [0, 0]
        assert all(np.isnan(values).all() for values in found.values())
    if "collapsed" in request.node.name:
        assert found["R@1"].tolist() == [100, 100]
        assert found["ties"].tolist() == [6, 6]
