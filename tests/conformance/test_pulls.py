"""Do gradients show what the loss did with each candidate, for losses whose weights are known?"""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from lossscope.conformance.pulls import Pulls, read_pulls
from lossscope.conformance.softmax_fit import fit_softmax
from lossscope.conformance.trial_embeddings import HARD, NEAR, POSITIVE, SPREAD, TrialEmbeddings, trial_embeddings

SIZES = st.integers(2, 24)


def softmax(trial: TrialEmbeddings, tau: float, columns: float = 0.0, copies: int = 1) -> Tensor:
    """Return the gradient of queries: the mean of both directions' losses, candidates' times `columns`."""
    q, c = (x.clone().requires_grad_() for x in (trial.queries, trial.candidates))
    S = normalize(q) @ normalize(c).T / tau
    positives = S.diagonal()[:, None].expand(-1, copies - 1)
    labels = torch.arange(len(S))
    loss = cross_entropy(torch.cat([S, positives], 1), labels) + columns * cross_entropy(S.T, labels)
    (gradient,) = torch.autograd.grad(loss, q)
    return gradient


KINDS = st.sampled_from([(0.0, False), (0.0, True), (HARD, False), (NEAR, False)])


@given(SIZES, st.integers(0, 3), st.integers(0, 2**31), KINDS, st.sampled_from([0.0, 0.7]))
def test_trials_are_unit_vectors_that_are_independent(
    size: int, mined: int, seed: int, kind: tuple[float, bool], cone: float
) -> None:
    trial = trial_embeddings(size, mined, seed, *kind, cone)
    basis = trial.basis
    assert torch.allclose(basis.norm(dim=1), torch.ones(len(basis), dtype=torch.float64))
    assert int(torch.linalg.matrix_rank(basis)) == len(basis) == size * (2 + mined)


@pytest.mark.parametrize(("hard", "near"), [(0.0, 0.0), (HARD, HARD), (NEAR, NEAR)])
def test_mined_negatives_are_as_similar_as_they_should_be(hard: float, near: float) -> None:
    trial = trial_embeddings(8, 2, 0, hard)
    assert trial.negatives is not None
    mined = torch.einsum("bd,bkd->bk", trial.queries, trial.negatives)
    assert bool(((mined - near).abs() <= SPREAD).all())
    positives = (trial.queries * trial.candidates).sum(1)
    assert bool(((positives - POSITIVE).abs() <= SPREAD).all())


@given(SIZES, st.floats(0.02, 1.0), st.integers(0, 2**31))
def test_weights_of_a_softmax_are_its_probabilities(size: int, tau: float, seed: int) -> None:
    trial = trial_embeddings(size, 0, seed)
    pulls = read_pulls(softmax(trial, tau), trial, 1e-9)
    P = (trial.queries @ trial.candidates.T / tau).softmax(1)
    assert pulls.residual < 1e-12
    assert torch.allclose(pulls.candidates, (P - torch.eye(size)) / tau / size, atol=1e-12)
    assert not bool(pulls.strayed.any()) and float(pulls.softness.max()) == 0


@pytest.mark.parametrize("columns", [0.0, 1.0])
@pytest.mark.parametrize("copies", [1, 2, 3])
@pytest.mark.parametrize("tau", [0.01, 0.05, 0.3, 1.0])
def test_a_softmax_is_recognised_with_its_numbers(tau: float, copies: int, columns: float) -> None:
    trial = trial_embeddings(8, 0, 3)
    pulls = read_pulls(softmax(trial, tau, columns, copies), trial, 1e-9)
    fit = fit_softmax(pulls, trial, 1e-9)
    assert fit is not None and fit.copies is not None
    assert fit.tau == pytest.approx(tau, rel=1e-5)
    assert fit.rows == pytest.approx(1 / 8, rel=1e-3) and fit.columns == pytest.approx(columns / 8, abs=1e-3)
    assert fit.copies.tolist() == pytest.approx([copies] * 8, abs=1e-2)


def test_what_is_no_softmax_is_not_taken_for_one() -> None:
    trial = trial_embeddings(8, 0, 3)
    q = trial.queries.clone().requires_grad_()
    S = normalize(q) @ trial.candidates.T
    hinge = (0.2 + S - S.diagonal()[:, None]).relu().square().mean()
    sigmoid = torch.nn.functional.softplus(10 * S - 10).mean() - S.diagonal().mean()
    for loss in (hinge, sigmoid):
        (gradient,) = torch.autograd.grad(loss, q, retain_graph=True)
        assert fit_softmax(read_pulls(gradient, trial, 1e-9), trial, 1e-9) is None


def test_no_temperature_is_stated_of_a_gradient_that_is_imprecise() -> None:
    trial = trial_embeddings(8, 0, 3)
    assert fit_softmax(read_pulls(softmax(trial, 0.05), trial, 1e-2), trial, 1e-2) is None


def pulls_of(rows: list[list[float]]) -> Pulls:
    W = torch.tensor(rows, dtype=torch.float64)
    return Pulls(W, torch.zeros_like(W), None, 0.0, 1e-9)


@pytest.mark.parametrize(("rows", "strayed"), [
    ([[-1.0, 1.0], [1.0, -1.0]], [False, False]),
    ([[-1.0, 1.0], [-1.0, 1.0]], [False, True]),  # pulls the other's candidate
    ([[-1.0, 1.0], [0.0, 0.0]], [False, False]),  # no gradient at all
    ([[-1.0, 1.0], [1.0, 0.0]], [False, True]),  # pushes, and pulls none
    ([[-1.0, -0.1], [1.0, -1.0]], [False, False]),  # a soft target
])  # fmt: skip
def test_a_query_strays_when_it_is_drawn_to_another_candidate(rows: list[list[float]], strayed: list[bool]) -> None:
    assert pulls_of(rows).strayed.tolist() == strayed


def test_copies_share_a_weight() -> None:
    trial = trial_embeddings(6, 0, 1).with_copy()
    pulls = read_pulls(softmax(trial, 0.1), trial, 1e-9)
    P = (trial.queries @ trial.candidates.T / 0.1).softmax(1)
    assert torch.allclose(pulls.candidates[:, 2:], ((P - torch.eye(6)) / 0.6)[:, 2:], atol=1e-9)
