"""How much do gradients turn vectors on the unit sphere?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lossscope.errors import InputError
from lossscope.registry import build
from tests.each import each
from tests.probes import lab

Oracle = Callable[[str], ModuleType]
OBJECTIVES = ["ntxent", "triplet", "unified:gamma=5", "goal:pair=sig", "siglip", "smoothap:tau=0.3"]


def weights_of(batch: Any, objective: str) -> Any:
    rows = batch.rows()
    return build("objectives", objective)(rows.S, rows.mask).W.numpy()


@each("objective", OBJECTIVES)
def test_the_tangent_of_queries_equals_the_oracle(objective: str, oracle: Oracle) -> None:
    batches, slow = lab.random_batches(many=objective.startswith("smoothap")), oracle("probes_gradient")
    for batch in batches.single_batches():
        actual, W = lab.columns(lab.run("tangent", batch, objective)), weights_of(batch, objective)
        S = batch.S[0].masked_fill(~(batch.match & batch.valid)[0], -2)
        for q in np.flatnonzero(~actual["skipped"]):
            v, candidates = batch.queries[0, q].numpy(), batch.candidates[0].numpy()
            expected = slow.tangent_and_radial(slow.gradient(W[q], candidates), v)
            expected["bound_17"] = slow.bound_17(W[q], v, candidates, int(S[q].argmax()))
            assert {name: actual[name][q] for name in expected} == pytest.approx(expected, rel=1e-9, nan_ok=True)


@each("objective", OBJECTIVES)
def test_the_tangent_of_candidates_equals_the_oracle(objective: str, oracle: Oracle) -> None:
    batches, slow = lab.random_batches(many=objective.startswith("smoothap")), oracle("probes_gradient")
    for batch in batches.single_batches():
        actual, W = lab.columns(lab.run("tangent:of=candidate", batch, objective)), weights_of(batch, objective)
        for c in range(7):
            expected = slow.tangent_and_radial(
                slow.gradient(W[:, c], batch.queries[0].numpy()), batch.candidates[0, c].numpy()
            )
            assert {name: actual[name][c] for name in expected} == pytest.approx(expected, rel=1e-9, nan_ok=True)


@each("objective", OBJECTIVES)
def test_the_tangent_of_the_hardest_negative_is_equation_12(objective: str) -> None:
    """|dl/dt| sin θ(v, t) with t the hardest negative of one query, in plain numpy; 0 where the loss is."""
    batches = lab.random_batches(many=objective.startswith("smoothap"))
    for batch in batches.single_batches():
        actual, W = lab.columns(lab.run("tangent:of=hardest", batch, objective)), weights_of(batch, objective)
        S = batch.S[0].masked_fill((batch.match | ~batch.valid)[0], -2).numpy()
        for q in np.flatnonzero(~actual["skipped"]):
            n = int(S[q].argmax())
            v, t = batch.queries[0, q].numpy(), batch.candidates[0, n].numpy()
            theta = np.arccos(np.dot(v, t) / np.linalg.norm(v) / np.linalg.norm(t))
            expected = abs(W[q, n]) * np.linalg.norm(v) * np.sin(theta)
            assert actual["tangent"][q] == pytest.approx(expected, rel=1e-6, abs=1e-12)
            assert actual["similarity"][q] == pytest.approx(np.cos(theta))
            assert actual["weight"][q] == abs(W[q, n])


def test_the_tangent_of_the_hardest_negative_vanishes_as_it_comes_to_the_query() -> None:
    """The argument of Li et al. 2022: the gradient is 1, and nothing of it turns the negative."""
    angles = torch.tensor([1.0, 0.3, 1e-2, 1e-4], dtype=torch.float64)
    queries = torch.tensor([[1.0, 0.0]], dtype=torch.float64).expand(4, 1, 2)
    negative = torch.stack([angles.cos(), angles.sin()], 1)[:, None]
    positive = torch.tensor([0.0, 1.0], dtype=torch.float64).expand(4, 1, 2)
    batch = replace(
        lab.random_batches(k=4, q=1, c=2, gaps=False), queries=queries, candidates=torch.cat([positive, negative], 1)
    )
    actual = lab.columns(lab.run("tangent:of=hardest", batch, "triplet_sh:margin=1"))
    np.testing.assert_allclose(actual["tangent"], angles.sin(), rtol=1e-9)
    assert (actual["weight"] == 1).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_bound_is_equation_17_in_plain_numpy(dtype: torch.dtype) -> None:
    """It was 1e-4 too high in float32: the root of the error of |t₊ − t₊|², times the weight of the positive."""
    vectors = torch.randn(2, 1, 16, 64, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    queries, candidates = torch.nn.functional.normalize(vectors, dim=3).to(dtype)
    batch = replace(lab.random_batches(k=1, q=16, c=16, gaps=False), queries=queries, candidates=candidates)
    W = weights_of(batch, "unified:gamma=1,margin=0.2").astype(float)
    V, T = batch.queries[0].double().numpy(), batch.candidates[0].double().numpy()
    expected = []
    for i, v in enumerate(V):
        differences = np.delete(T - T[i], i, 0)
        perpendicular = differences - np.outer(differences @ v, v) / (v @ v)  # |t_j − t_i| sin θ(v, t_j − t_i)
        expected.append((np.delete(W[i], i) * np.linalg.norm(perpendicular, axis=1)).sum())
    actual = lab.columns(lab.run("tangent", batch, "unified:gamma=1,margin=0.2"))["bound_17"]
    np.testing.assert_allclose(actual, expected, rtol=1e-12 if dtype == torch.float64 else 5e-7)


def test_it_is_the_gradient_of_the_loss_with_respect_to_unnormalised_vectors() -> None:
    """Autograd propagates this part through the normalisation of a vector of length 1."""
    batch, objective = lab.random_batches(k=1, c=6, gaps=False), build("objectives", "ntxent")
    v, t = batch.queries[0].clone().requires_grad_(), batch.candidates[0].clone().requires_grad_()
    S = torch.nn.functional.normalize(v, dim=1) @ torch.nn.functional.normalize(t, dim=1).T
    objective.values(S, batch.rows().mask).sum().backward()
    queries, candidates = (
        lab.columns(lab.run(f"tangent:of={side}", batch, "ntxent"))["tangent"] for side in ("query", "candidate")
    )
    np.testing.assert_allclose(queries, v.grad.norm(dim=1), rtol=1e-9)
    np.testing.assert_allclose(candidates, t.grad.norm(dim=1), rtol=1e-9)


@each("objective", ["triplet_sh", "unified:gamma=1", "unified:gamma=60"])
def test_one_negative_makes_the_bound_exact(objective: str) -> None:
    """With a single term, eq. (11) and (17) are the norm itself."""
    batch = lab.random_batches(k=5, q=2, c=2, gaps=False)
    actual = lab.columns(lab.run("tangent", batch, objective))
    np.testing.assert_allclose(actual["bound_17"], actual["tangent"], rtol=1e-9, atol=1e-12)


@each("objective", OBJECTIVES)
@settings(max_examples=20)
@given(seed=st.integers(0, 50))
def test_the_bound_is_a_bound(objective: str, seed: int) -> None:
    batches = lab.random_batches(seed, k=1, many=objective.startswith("smoothap"))
    actual = lab.columns(lab.run("tangent", batches, objective))
    assert (actual["bound_17"] >= actual["tangent"] * (1 - 1e-9) - 1e-12).all()


@each("kind", lab.DEGENERATE, "of", ["query", "candidate", "hardest"], "objective", OBJECTIVES)
def test_degenerate_batches_give_no_infinity(objective: str, of: str, kind: str) -> None:
    actual = lab.measure(f"tangent:of={of}", lab.degenerate(kind), objective)
    assert not any(np.isinf(values).any() for values in actual.values())
    if "collapsed" in kind:
        name = "tangent" if of == "query" else f"{of}_tangent"
        assert actual[name] == pytest.approx([0, 0], abs=1e-3)
        if objective in ("ntxent", "triplet") and of == "query":
            assert np.isnan(actual["radial"]).all()
            assert actual["bound_17"] == pytest.approx([0, 0], abs=1e-5)


def test_close_candidates_keep_their_digits_in_the_bound(oracle: Oracle) -> None:
    """In float32, 1e-3 apart: 2 − 2 t·t' would have two digits left; it is computed in float64."""
    batch = lab.random_batches(k=1, q=6, c=7, gaps=False)
    near = torch.nn.functional.normalize(batch.candidates[:, :1] + 1e-3 * batch.candidates, dim=2)
    batch = replace(batch, queries=batch.queries.float(), candidates=near.float())
    slow, W = oracle("probes_gradient"), weights_of(batch, "ntxent")
    expected = [
        slow.bound_17(W[q].astype(float), batch.queries[0, q].double().numpy(), batch.candidates[0].double().numpy(), q)
        for q in range(6)
    ]
    actual = lab.columns(lab.run("tangent", batch))["bound_17"]
    np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_the_sides_have_different_names() -> None:
    """Otherwise they would be averaged into one row of a summary."""
    probes = [build("probes", f"tangent:of={of}") for of in ("query", "candidate", "hardest")]
    names = [statistic.name for probe in probes for statistic in probe.statistics(None)]
    assert len(set(names)) == len(names)


def test_an_unknown_side_raises() -> None:
    with pytest.raises(InputError, match=r"of must be .*query.*candidate.*hardest; got 'image'"):
        build("probes", "tangent:of=image")
