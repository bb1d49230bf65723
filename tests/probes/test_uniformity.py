"""How evenly are queries distributed over the unit sphere?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
import torch

from tests.each import each
from tests.probes import lab

Oracle = Callable[[str], ModuleType]


@each("q, d", [(2, 3), (6, 4), (12, 20)])
def test_the_statistic_equals_the_oracle(q: int, d: int, oracle: Oracle) -> None:
    batches = lab.random_batches(q=q, c=q + 1, d=d, gaps=False)
    batches = replace(batches, queries=2 * batches.queries)  # the length must not matter
    actual = lab.measure("uniformity", batches)["uniformity"]
    for b, batch in enumerate(batches.single_batches()):
        assert actual[b] == pytest.approx(oracle("probes_vectors").uniformity(batch.queries[0].numpy()), rel=1e-9)


@each("kind", lab.DEGENERATE)
def test_degenerate_batches_give_no_infinity(kind: str) -> None:
    (actual,) = lab.measure("uniformity", lab.degenerate(kind)).values()
    assert np.isfinite(actual).all()
    for name, expected in {"collapsed": 0, "separated": -4, "opposite": -4}.items():
        if name in kind:
            assert actual == pytest.approx([expected, expected], abs=1e-5)


def test_one_query_has_no_uniformity() -> None:
    actual = lab.measure("uniformity", lab.random_batches(q=1, c=3, gaps=False))
    assert np.isnan(actual["uniformity"]).all()


def test_two_opposite_queries_have_the_lowest_uniformity() -> None:
    batch = lab.random_batches(k=1, q=2, c=2, d=2, gaps=False)
    around = torch.tensor([[[1.0, 0.0], [-1.0, 0.0]]])
    assert lab.measure("uniformity", replace(batch, queries=around, candidates=around))["uniformity"] == pytest.approx(
        [-8], abs=1e-3
    )
