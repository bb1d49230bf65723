"""Over how many directions queries are spread."""

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


@pytest.mark.parametrize(("q", "d"), [(6, 4), (6, 6), (6, 20), (40, 5)])
def test_the_number_is_that_of_the_singular_values(q: int, d: int, lab: Any, oracle: Oracle) -> None:
    batches = lab.drawn(q=q, c=q, d=d)
    found = lab.ask("effective_rank", batches)["effective_rank"]
    for b, one in enumerate(batches.alone()):
        assert found[b] == pytest.approx(oracle("probes_vectors").effective_rank(one.queries[0].numpy()), rel=1e-7)


@pytest.mark.parametrize("d", [4, 20])
def test_stacks_and_panels_change_nothing(d: int, lab: Any) -> None:
    lab.however_cut("effective_rank", lab.drawn(d=d))


def test_of_orthogonal_queries_it_is_their_number(lab: Any) -> None:
    one = lab.drawn(k=1, q=5, c=6, d=8, gaps=False)
    found = lab.ask("effective_rank", replace(one, queries=3 * torch.eye(8)[None, :5], candidates=torch.eye(8)[None]))
    assert found["effective_rank"] == pytest.approx([5])


@given(queries=st.permutations(range(6)), turn=st.integers(0, 100))
def test_neither_the_order_nor_a_rotation_matters(queries: list[int], turn: int, lab: Any) -> None:
    batches = lab.drawn()
    random = torch.Generator().manual_seed(turn)
    rotation = torch.linalg.qr(torch.randn(4, 4, generator=random, dtype=torch.float64)).Q
    other = replace(batches.in_order(queries, range(7)), queries=batches.queries[:, queries] @ rotation)
    lab.same(lab.ask("effective_rank", other), lab.ask("effective_rank", batches), rtol=1e-7)


def test_degenerate_batches_give_no_infinity(degenerate: Any, lab: Any, request: pytest.FixtureRequest) -> None:
    (found,) = lab.ask("effective_rank", degenerate).values()
    assert np.isfinite(found).all()
    for name, expected in {"collapsed": 1, "separated": 6, "opposite": 6}.items():
        if name in request.node.name:
            assert found == pytest.approx([expected, expected], rel=1e-6)


def test_vectors_of_zeros_have_none(lab: Any) -> None:
    one = lab.drawn(gaps=False)
    found = lab.ask("effective_rank", replace(one, queries=torch.zeros_like(one.queries)))
    assert np.isnan(found["effective_rank"]).all()
