"""Where two objectives are equal: limits, rescalings, and special cases of GOAL."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from lossscope.core.similarity import Mask, pair_mask
from lossscope.core.weights import Weights
from lossscope.registry import build

B = 12


@pytest.fixture(name="S", params=range(3))
def similarities(request: pytest.FixtureRequest) -> Tensor:
    """(B, B) similarities between −0.5 and 0.9, so that some pairs violate the margin and some do not."""
    random_numbers = torch.rand(B, B, dtype=torch.float64, generator=torch.Generator().manual_seed(request.param))
    return random_numbers * 0.9 - 0.5 + 0.5 * torch.eye(B, dtype=torch.float64)


def evaluate(spec: str, S: Tensor) -> Weights:
    weights: Weights = build("objectives", spec)(S, pair_mask(torch.arange(len(S))))
    return weights


def assert_same(actual: Tensor | None, expected: Tensor | None, tolerance: float = 1e-12) -> None:
    assert actual is not None
    assert expected is not None
    torch.testing.assert_close(actual, expected, rtol=0, atol=tolerance)


def positive_and_hardest(S: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """s₊ (B,), s_n* (B,), column of n* (B,)."""
    negatives = S.masked_fill(torch.eye(len(S), dtype=torch.bool), -torch.inf)
    return S.diag(), *negatives.max(1)


def test_unified_goes_to_triplet_sh_as_gamma_grows(S: Tensor) -> None:
    sharp, limit = evaluate("unified:gamma=1e6,margin=0.2", S), evaluate("triplet_sh:margin=0.2", S)
    assert_same(sharp.values, limit.values, 1e-5)
    assert_same(sharp.W, limit.W, 1e-6)


@pytest.mark.parametrize("gamma", [1, 20, 50])
def test_gamma_times_unified_without_margin_is_vlc(S: Tensor, gamma: float) -> None:
    unified, vlc = evaluate(f"unified:gamma={gamma},margin=0", S), evaluate(f"vlc:gamma={gamma}", S)
    assert unified.values is not None
    assert_same(gamma * unified.values, vlc.values)
    assert_same(gamma * unified.W, vlc.W)


@pytest.mark.parametrize("gamma", [2, 10, 50])
def test_vlc_is_ntxent_at_the_inverse_temperature(S: Tensor, gamma: float) -> None:
    vlc, ntxent = evaluate(f"vlc:gamma={gamma}", S), evaluate(f"ntxent:tau={1 / gamma}", S)
    assert_same(vlc.values, ntxent.values)
    assert_same(vlc.W, ntxent.W)


@pytest.mark.parametrize("margin", [0, 0.1, 0.2, 0.3])
def test_goal_con_con_is_triplet_sh_to_the_last_bit(S: Tensor, margin: float) -> None:
    for similarities in (S, (S * 10).round() / 10, (S * 10).round().float() / 10):
        goal, triplet = (
            evaluate(f"goal:margin={margin}", similarities),
            evaluate(f"triplet_sh:margin={margin}", similarities),
        )
        assert torch.equal(goal.W, triplet.W)
        assert len(goal.W.unique()) > 1


@pytest.mark.parametrize("tau", [1, 10, 30])
def test_goal_nca_con_is_ntxent_on_two_candidates_up_to_tau(S: Tensor, tau: float) -> None:
    goal = evaluate(f"goal:triplet=nca,tau={tau}", S).W
    s_pos, s_neg, column = positive_and_hardest(S)
    match = torch.tensor([[True, False]]).expand(B, 2)
    pair = build("objectives", f"ntxent:tau={1 / tau}")(torch.stack([s_pos, s_neg], 1), Mask(match, match | True))
    assert_same(pair.W[:, 0], tau * goal.diag())
    assert_same(pair.W[:, 1], tau * goal.gather(1, column[:, None]).squeeze(1))


@pytest.mark.parametrize(("variant", "m"), [("paper", 2**-0.5), ("released", 0.5)])
def test_goal_cir_lin_is_circle_on_the_hardest_with_attached_factors(S: Tensor, variant: str, m: float) -> None:
    tau = 10.0
    goal = evaluate(f"goal:triplet=cir,pair=lin,tau={tau},variant={variant}", S).W
    s_pos, s_neg, column = positive_and_hardest(S)
    assert bool((s_neg > -m).all())
    attached, detached = (circle(s_pos, s_neg, tau, m, detach) for detach in (False, True))
    assert_same(attached[0], 2 * tau * goal.diag())
    assert_same(attached[1], 2 * tau * goal.gather(1, column[:, None]).squeeze(1))
    assert not torch.allclose(detached[0], attached[0], rtol=1e-3)


def circle(s_pos: Tensor, s_neg: Tensor, tau: float, m: float, detach: bool) -> tuple[Tensor, Tensor]:
    """dL/ds₊, dL/ds₋ of log(1 + exp(tau (a₋ (s₋ − m) − a₊ (s₊ − 1 + m)))), a₊ = [1 + m − s₊]₊, a₋ = [s₋ + m]₊."""
    s_pos, s_neg = s_pos.clone().requires_grad_(), s_neg.clone().requires_grad_()
    a_pos, a_neg = (1 + m - s_pos).relu(), (s_neg + m).relu()
    if detach:
        a_pos, a_neg = a_pos.detach(), a_neg.detach()
    exponent = tau * (a_neg * (s_neg - m) - a_pos * (s_pos - (1 - m)))
    pos, neg = torch.autograd.grad(torch.nn.functional.softplus(exponent, threshold=100).sum(), [s_pos, s_neg])
    return pos, neg


def test_goal_con_sig_has_the_weights_of_binomial_deviance(S: Tensor) -> None:
    alpha, beta, lam = 2.0, 10.0, 0.5
    s_pos, s_neg, column = positive_and_hardest(S)
    p, n = s_pos.clone().requires_grad_(), s_neg.clone().requires_grad_()
    deviance = (1 + (-alpha * (p - lam)).exp()).log() / alpha + (1 + (beta * (n - lam)).exp()).log() / beta
    d_pos, d_neg = torch.autograd.grad(deviance.sum(), [p, n])
    on_all_rows = evaluate("goal:pair=sig,variant=released", S).W
    assert_same(on_all_rows.diag(), d_pos)
    assert_same(on_all_rows.gather(1, column[:, None]).squeeze(1), d_neg)
    violating = 0.2 + s_neg - s_pos > 0
    assert_same(evaluate("goal:pair=sig", S).W, on_all_rows * violating[:, None])
    assert 0 < int(violating.sum()) < B


@pytest.mark.parametrize(("m_plus", "m_minus"), [(0.1, 0.1), (0, 0), (0.5, 2)])
def test_goal_con_sig_ms_has_the_multi_similarity_form_at_given_m(S: Tensor, m_plus: float, m_minus: float) -> None:
    options = f"m_plus={m_plus},m_minus={m_minus},alpha=2,beta=10,lam=0.5"
    goal: Any = build("objectives", f"goal:pair=sig-ms,variant=released,{options}")
    s_pos, s_neg, column = positive_and_hardest(S)
    W = goal(S, pair_mask(torch.arange(B))).W
    assert not goal.coupled
    assert_same(-W.diag(), 1 / (m_plus + (2 * (s_pos - 0.5)).exp()))
    assert_same(W.gather(1, column[:, None]).squeeze(1), 1 / (m_minus + (-10 * (s_neg - 0.5)).exp()))


def test_sig_ms_at_m_one_is_sig(S: Tensor) -> None:
    assert_same(evaluate("goal:pair=sig-ms,m_plus=1,m_minus=1", S).W, evaluate("goal:pair=sig", S).W)


def test_an_empty_set_lets_the_negative_weight_of_sig_ms_grow_to_148() -> None:
    S = torch.eye(2, dtype=torch.float64) + (1 - torch.eye(2, dtype=torch.float64)) * 1.0
    W = evaluate("goal:pair=sig-ms,variant=released", S).W
    assert float(W.max()) == pytest.approx(148.413, rel=1e-5)


def test_smoothap_of_one_positive_and_one_negative_is_a_rank_of_two() -> None:
    match = torch.tensor([[True, False]])
    S = torch.tensor([[0.31, 0.3]], dtype=torch.float64)
    values = build("objectives", "smoothap:tau=0.01")(S, Mask(match, match | True)).values
    G = 1 / (1 + torch.tensor(1.0, dtype=torch.float64).exp())
    assert_same(values, (1 - 1 / (1 + G)).reshape(1))
