"""Which candidates make the update of a query?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lossscope.registry import build
from tests.each import each
from tests.probes import lab

Oracle = Callable[[str], ModuleType]
OBJECTIVES = ["ntxent", "triplet", "goal:pair=sig", "siglip", "smoothap:tau=0.3"]


@each("objective", OBJECTIVES)
def test_the_shares_equal_the_oracle(objective: str, oracle: Oracle) -> None:
    batches = lab.random_batches(many=objective.startswith("smoothap"))
    for batch in batches.single_batches():
        actual, rows = lab.columns(lab.run("influence", batch, objective)), batch.rows()
        W = build("objectives", objective)(rows.S, rows.mask).W.numpy()
        for q in np.flatnonzero(~actual["skipped"]):
            masks = rows.mask.positives[q].tolist(), rows.mask.negatives[q].tolist()
            expected = oracle("probes_gradient").influence(
                W[q], batch.candidates[0].numpy(), *masks, rows.S[q].tolist()
            )
            shares = {name: actual[name][q] for name in expected}
            assert shares == pytest.approx(expected, rel=1e-7, abs=1e-9, nan_ok=True)


def test_by_hand() -> None:
    """Both negatives violate: g = n + m − 2 p = (−1.04, 1.28), |g|² = 2.72; m is close to p and acts against it."""
    candidates = torch.tensor([[[1.0, 0, 0], [0, 1, 0], [0.96, 0.28, 0]]], dtype=torch.float64)
    batch = lab.random_batches(k=1, q=1, c=3, d=3, gaps=False)
    batch = replace(batch, queries=torch.tensor([[[0.0, 0, 1]]], dtype=torch.float64), candidates=candidates)
    actual = {name: float(v[0]) for name, v in lab.measure("influence", batch, "triplet").items()}
    shares = {"share_pos": 2.08, "share_neg": 0.64, "share_hardest": 1.28, "opposed": -0.64, "largest": 2.08}
    expected = {name: share / 2.72 for name, share in shares.items()}
    assert actual == pytest.approx({**expected, "cancellation": 2.72**0.5 / 4, "undirected": 0})


@given(seed=st.integers(0, 50))
def test_bounds_of_the_statistics(seed: int) -> None:
    actual = lab.columns(lab.run("influence", lab.random_batches(seed, k=1, gaps=False)))
    np.testing.assert_allclose(actual["share_pos"] + actual["share_neg"], 1)
    assert (actual["opposed"] <= 0).all()
    assert (actual["share_hardest"] <= actual["largest"]).all()
    assert ((actual["cancellation"] > 0) & (actual["cancellation"] <= 1 + 1e-12)).all()


@each("kind", lab.DEGENERATE, "objective", OBJECTIVES)
def test_degenerate_batches_give_no_infinity(objective: str, kind: str) -> None:
    actual = lab.measure("influence", lab.degenerate(kind), objective)
    assert not any(np.isinf(values).any() for values in actual.values())
    if "collapsed" in kind and objective in ("ntxent", "triplet"):
        assert np.isnan(actual["share_pos"]).all()
        assert actual["cancellation"] == pytest.approx([0, 0], abs=1e-6)
    if "separated" in kind and objective == "triplet":
        assert np.isnan(actual["cancellation"]).all()
