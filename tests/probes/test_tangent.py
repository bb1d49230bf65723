"""How strongly gradients turn vectors on their sphere."""

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

from lossscope.errors import InputError
from lossscope.registry import build

Oracle = Callable[[str], ModuleType]
OBJECTIVES = ["ntxent", "triplet", "unified:gamma=5", "goal:pair=sig", "siglip", "smoothap:tau=0.3"]


def weighed(one: Any, objective: str) -> Any:
    rows = one.rows()
    return build("objectives", objective)(rows.S, rows.mask).W.numpy()


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_queries_are_turned_as_far_as_their_candidates_add_up(objective: str, lab: Any, oracle: Oracle) -> None:
    batches, slow = lab.drawn(many=objective.startswith("smoothap")), oracle("probes_gradient")
    for one in batches.alone():
        found, W = lab.columns(lab.found("tangent", one, objective)), weighed(one, objective)
        S = one.S[0].masked_fill(~(one.match & one.valid)[0], -2)
        for q in np.flatnonzero(~found["skipped"]):
            v, candidates = one.queries[0, q].numpy(), one.candidates[0].numpy()
            expected = slow.turned(slow.gradient(W[q], candidates), v)
            expected["bound_17"] = slow.bound_17(W[q], v, candidates, int(S[q].argmax()))
            assert {name: found[name][q] for name in expected} == pytest.approx(expected, rel=1e-9, nan_ok=True)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_candidates_are_turned_as_far_as_the_queries_add_up(objective: str, lab: Any, oracle: Oracle) -> None:
    batches, slow = lab.drawn(many=objective.startswith("smoothap")), oracle("probes_gradient")
    for one in batches.alone():
        found, W = lab.columns(lab.found("tangent:of=candidate", one, objective)), weighed(one, objective)
        for c in range(7):
            expected = slow.turned(slow.gradient(W[:, c], one.queries[0].numpy()), one.candidates[0, c].numpy())
            assert {name: found[name][c] for name in expected} == pytest.approx(expected, rel=1e-9, nan_ok=True)


def test_it_is_the_gradient_of_the_loss_with_respect_to_unnormalised_vectors(lab: Any) -> None:
    """What autograd sends through the normalisation of a vector of length 1."""
    one, objective = lab.drawn(k=1, c=6, gaps=False), build("objectives", "ntxent")
    v, t = one.queries[0].clone().requires_grad_(), one.candidates[0].clone().requires_grad_()
    S = torch.nn.functional.normalize(v, dim=1) @ torch.nn.functional.normalize(t, dim=1).T
    objective.values(S, one.rows().mask).sum().backward()
    queries, candidates = (
        lab.columns(lab.found(f"tangent:of={side}", one, "ntxent"))["tangent"] for side in ("query", "candidate")
    )
    np.testing.assert_allclose(queries, v.grad.norm(dim=1), rtol=1e-9)
    np.testing.assert_allclose(candidates, t.grad.norm(dim=1), rtol=1e-9)


@pytest.mark.parametrize("objective", ["triplet_sh", "unified:gamma=1", "unified:gamma=60"])
def test_one_negative_makes_the_bound_exact(objective: str, lab: Any) -> None:
    """Eq. (11) and (17) are the norm itself when there is one term."""
    one = lab.drawn(k=5, q=2, c=2, gaps=False)
    found = lab.columns(lab.found("tangent", one, objective))
    np.testing.assert_allclose(found["bound_17"], found["tangent"], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("objective", OBJECTIVES)
@given(seed=st.integers(0, 50))
def test_the_bound_is_a_bound(objective: str, seed: int, lab: Any) -> None:
    batches = lab.drawn(seed, k=1, many=objective.startswith("smoothap"))
    found = lab.columns(lab.found("tangent", batches, objective))
    assert (found["bound_17"] >= found["tangent"] * (1 - 1e-9) - 1e-12).all()


@pytest.mark.parametrize("of", ["query", "candidate"])
@pytest.mark.parametrize("objective", ["ntxent", "smoothap:tau=0.3"])
def test_stacks_and_panels_change_nothing(objective: str, of: str, lab: Any) -> None:
    lab.however_cut(f"tangent:of={of}", lab.drawn(many=objective.startswith("smoothap")), objective)


@pytest.mark.slow
@pytest.mark.parametrize("of", ["query", "candidate"])
@given(queries=st.permutations(range(6)), candidates=st.permutations(range(7)))
def test_the_order_of_a_batch_does_not_matter(of: str, queries: list[int], candidates: list[int], lab: Any) -> None:
    batches = lab.drawn()
    lab.same(*(lab.ask(f"tangent:of={of}", one) for one in (batches.in_order(queries, candidates), batches)))


@pytest.mark.parametrize("of", ["query", "candidate"])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_degenerate_batches_give_no_infinity(
    objective: str, of: str, degenerate: Any, lab: Any, request: pytest.FixtureRequest
) -> None:
    found = lab.ask(f"tangent:of={of}", degenerate, objective)
    assert not any(np.isinf(values).any() for values in found.values())
    if "collapsed" in request.node.name:
        name = "tangent" if of == "query" else "candidate_tangent"
        assert found[name] == pytest.approx([0, 0], abs=1e-3)
        if objective in ("ntxent", "triplet") and of == "query":
            assert np.isnan(found["radial"]).all()
            assert found["bound_17"] == pytest.approx([0, 0], abs=1e-5)


def test_close_candidates_keep_their_digits_in_the_bound(lab: Any, oracle: Oracle) -> None:
    """In float32, 1e-3 apart: 2 − 2 t·t' would have two digits left."""
    one = lab.drawn(k=1, q=6, c=7, gaps=False)
    near = torch.nn.functional.normalize(one.candidates[:, :1] + 1e-3 * one.candidates, dim=2)
    one = replace(one, queries=one.queries.float(), candidates=near.float())
    slow, W = oracle("probes_gradient"), weighed(one, "ntxent")
    expected = [
        slow.bound_17(W[q].astype(float), one.queries[0, q].double().numpy(), one.candidates[0].double().numpy(), q)
        for q in range(6)
    ]
    found = lab.columns(lab.found("tangent", one))["bound_17"]
    np.testing.assert_allclose(found, expected, rtol=2e-3)


def test_the_two_sides_have_names_of_their_own() -> None:
    """Else both would be averaged into one row of a summary."""
    told = [{s.name for s in build("probes", f"tangent:of={of}").statistics(None)} for of in ("query", "candidate")]
    assert not told[0] & told[1]


def test_another_side_is_refused() -> None:
    with pytest.raises(InputError, match=r"of must be .*query.*candidate.*; got 'image'"):
        build("probes", "tangent:of=image")
