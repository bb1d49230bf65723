"""Over how many directions are queries distributed?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.each import each
from tests.probes import lab

Oracle = Callable[[str], ModuleType]


@each("q, d", [(6, 4), (6, 6), (6, 20), (40, 5)])
def test_the_statistic_equals_the_oracle(q: int, d: int, oracle: Oracle) -> None:
    batches = lab.random_batches(q=q, c=q, d=d)
    actual = lab.measure("effective_rank", batches)["effective_rank"]
    for b, batch in enumerate(batches.single_batches()):
        assert actual[b] == pytest.approx(oracle("probes_vectors").effective_rank(batch.queries[0].numpy()), rel=1e-7)


def test_the_rank_of_orthogonal_queries_is_their_number() -> None:
    batch = lab.random_batches(k=1, q=5, c=6, d=8, gaps=False)
    actual = lab.measure(
        "effective_rank", replace(batch, queries=3 * torch.eye(8)[None, :5], candidates=torch.eye(8)[None])
    )
    assert actual["effective_rank"] == pytest.approx([5])


@settings(max_examples=15)
@given(queries=st.permutations(range(6)), turn=st.integers(0, 100))
def test_neither_the_order_nor_a_rotation_matters(queries: list[int], turn: int) -> None:
    batches = lab.random_batches()
    random = torch.Generator().manual_seed(turn)
    rotation = torch.linalg.qr(torch.randn(4, 4, generator=random, dtype=torch.float64)).Q
    other = replace(batches.permute(queries, range(7)), queries=batches.queries[:, queries] @ rotation)
    lab.assert_same(lab.measure("effective_rank", other), lab.measure("effective_rank", batches), rtol=1e-7)


@each("kind", lab.DEGENERATE)
def test_degenerate_batches_give_no_infinity(kind: str) -> None:
    (actual,) = lab.measure("effective_rank", lab.degenerate(kind)).values()
    assert np.isfinite(actual).all()
    for name, expected in {"collapsed": 1, "separated": 6, "opposite": 6}.items():
        if name in kind:
            assert actual == pytest.approx([expected, expected], rel=1e-6)


def test_vectors_of_zeros_have_no_rank() -> None:
    batch = lab.random_batches(gaps=False)
    actual = lab.measure("effective_rank", replace(batch, queries=torch.zeros_like(batch.queries)))
    assert np.isnan(actual["effective_rank"]).all()
