"""Which candidates make the update."""

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

from lossscope.registry import build

Oracle = Callable[[str], ModuleType]
OBJECTIVES = ["ntxent", "triplet", "goal:pair=sig", "siglip", "smoothap:tau=0.3"]


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_shares_are_those_of_the_candidates_one_by_one(objective: str, lab: Any, oracle: Oracle) -> None:
    batches = lab.drawn(many=objective.startswith("smoothap"))
    for one in batches.alone():
        found, rows = lab.columns(lab.found("influence", one, objective)), one.rows()
        W = build("objectives", objective)(rows.S, rows.mask).W.numpy()
        for q in np.flatnonzero(~found["skipped"]):
            masks = rows.mask.positives[q].tolist(), rows.mask.negatives[q].tolist()
            expected = oracle("probes_gradient").influence(W[q], one.candidates[0].numpy(), *masks, rows.S[q].tolist())
            got = {name: found[name][q] for name in expected}
            assert got == pytest.approx(expected, rel=1e-7, abs=1e-9, nan_ok=True)


def test_by_hand(lab: Any) -> None:
    """Both negatives violate: g = n + m − 2 p = (−1.04, 1.28), |g|² = 2.72; m lies near p and works against it."""
    candidates = torch.tensor([[[1.0, 0, 0], [0, 1, 0], [0.96, 0.28, 0]]], dtype=torch.float64)
    one = lab.drawn(k=1, q=1, c=3, d=3, gaps=False)
    one = replace(one, queries=torch.tensor([[[0.0, 0, 1]]], dtype=torch.float64), candidates=candidates)
    found = {name: float(v[0]) for name, v in lab.ask("influence", one, "triplet").items()}
    shares = {"share_pos": 2.08, "share_neg": 0.64, "share_hardest": 1.28, "opposed": -0.64, "largest": 2.08}
    expected = {name: share / 2.72 for name, share in shares.items()}
    assert found == pytest.approx({**expected, "cancellation": 2.72**0.5 / 4, "undirected": 0})


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_stacks_and_panels_change_nothing(objective: str, lab: Any) -> None:
    lab.however_cut("influence", lab.drawn(many=objective.startswith("smoothap")), objective)


@pytest.mark.slow
@given(queries=st.permutations(range(6)), candidates=st.permutations(range(7)))
def test_the_order_of_a_batch_does_not_matter(queries: list[int], candidates: list[int], lab: Any) -> None:
    batches = lab.drawn()
    lab.same(lab.ask("influence", batches.in_order(queries, candidates)), lab.ask("influence", batches))


@pytest.mark.slow
@given(seed=st.integers(0, 50))
def test_what_must_hold_of_any_update(seed: int, lab: Any) -> None:
    found = lab.columns(lab.found("influence", lab.drawn(seed, k=1, gaps=False)))
    np.testing.assert_allclose(found["share_pos"] + found["share_neg"], 1)
    assert (found["opposed"] <= 0).all()
    assert (found["share_hardest"] <= found["largest"]).all()
    assert ((found["cancellation"] > 0) & (found["cancellation"] <= 1 + 1e-12)).all()


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_degenerate_batches_give_no_infinity(
    objective: str, degenerate: Any, lab: Any, request: pytest.FixtureRequest
) -> None:
    found = lab.ask("influence", degenerate, objective)
    assert not any(np.isinf(values).any() for values in found.values())
    if "collapsed" in request.node.name and objective in ("ntxent", "triplet"):
        assert np.isnan(found["share_pos"]).all()
        assert found["cancellation"] == pytest.approx([0, 0], abs=1e-6)
    if "separated" in request.node.name and objective == "triplet":
        assert np.isnan(found["cancellation"]).all()
