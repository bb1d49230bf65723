"""Are objectives equal in limits, under rescalings, and in special cases of GOAL?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from lossscope.core.similarity import Mask, pair_mask
from lossscope.core.weights import Weights
from lossscope.registry import build
from tests.each import each

B = 12


def similarities(seed: int) -> Tensor:
    """Return (B, B) similarities between −0.5 and 0.9: a part of the pairs violate the margin."""
    random_numbers = torch.rand(B, B, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
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


@each("seed", range(3))
def test_unified_goes_to_triplet_sh_as_gamma_grows(seed: int) -> None:
    S = similarities(seed)
    sharp, limit = evaluate("unified:gamma=1e6,margin=0.2", S), evaluate("triplet_sh:margin=0.2", S)
    assert_same(sharp.values, limit.values, 1e-5)
    assert_same(sharp.W, limit.W, 1e-6)


@each("seed", range(3))
def test_unified_with_the_weights_of_ssp_goes_to_its_polynomials(seed: int) -> None:
    """Eq. 24 with w_ij of SSP: the limit is SSP's clamped sum, of the negative whose polynomial is largest."""
    S = 0.5 + similarities(seed) / 3  # from 0.33 on, but for few of which the polynomial grows with the similarity
    sharp = evaluate("unified:gamma=1e6,margin=0.53,weights=ssp", S)
    push = (0.9 * S**2 - 0.4 * S + 0.03).masked_fill(torch.eye(len(S), dtype=torch.bool), -torch.inf)
    positive = S.diag()
    assert_same(sharp.values, (0.2 * positive**2 - 0.7 * positive + 0.5 + push.amax(1)).relu(), 1e-5)
    of_paper = evaluate("ssp:clamp=sum,margin=10", S)
    same = push.argmax(1) == positive_and_hardest(S)[2]  # where the hardest negative has the largest polynomial
    assert bool(same.any())
    assert sharp.values is not None and of_paper.values is not None
    assert_same(sharp.values[same], of_paper.values[same], 1e-5)
    assert_same(sharp.W[same], of_paper.W[same], 1e-5)


@each("seed", range(3))
def test_unified_with_margins_of_labels_goes_to_ncr(seed: int) -> None:
    """Eq. 26 and 27."""
    S = similarities(seed)
    labels = torch.linspace(0, 1, len(S), dtype=S.dtype)
    mask = replace(pair_mask(torch.arange(len(S))), info={"label": labels})
    sharp, limit = (build("objectives", spec)(S, mask) for spec in ("unified:gamma=1e6,margins=ncr", "ncr"))
    assert_same(sharp.values, limit.values, 1e-5)
    assert_same(sharp.W, limit.W, 1e-5)


@each("seed", range(3), "gamma", [1, 20, 50])
def test_gamma_times_unified_without_margin_is_vlc(seed: int, gamma: float) -> None:
    S = similarities(seed)
    unified, vlc = evaluate(f"unified:gamma={gamma},margin=0", S), evaluate(f"vlc:gamma={gamma}", S)
    assert unified.values is not None
    assert_same(gamma * unified.values, vlc.values)
    assert_same(gamma * unified.W, vlc.W)


@each("seed", range(3), "gamma", [2, 10, 50])
def test_vlc_is_ntxent_at_the_inverse_temperature(seed: int, gamma: float) -> None:
    S = similarities(seed)
    vlc, ntxent = evaluate(f"vlc:gamma={gamma}", S), evaluate(f"ntxent:tau={1 / gamma}", S)
    assert_same(vlc.values, ntxent.values)
    assert_same(vlc.W, ntxent.W)


@each("seed", range(3), "m_plus, m_minus", [(0.1, 0.1), (0, 0), (0.5, 2)])
def test_goal_con_sig_ms_has_the_multi_similarity_form_at_given_m(seed: int, m_plus: float, m_minus: float) -> None:
    S = similarities(seed)
    options = f"m_plus={m_plus},m_minus={m_minus},alpha=2,beta=10,lam=0.5"
    goal: Any = build("objectives", f"goal:pair=sig-ms,variant=released,{options}")
    s_pos, s_neg, column = positive_and_hardest(S)
    W = goal(S, pair_mask(torch.arange(B))).W
    assert not goal.coupled
    assert_same(-W.diag(), 1 / (m_plus + (2 * (s_pos - 0.5)).exp()))
    assert_same(W.gather(1, column[:, None]).squeeze(1), 1 / (m_minus + (-10 * (s_neg - 0.5)).exp()))


@each("seed", range(3))
def test_sig_ms_at_m_one_is_sig(seed: int) -> None:
    S = similarities(seed)
    assert_same(evaluate("goal:pair=sig-ms,m_plus=1,m_minus=1", S).W, evaluate("goal:pair=sig", S).W)


def test_an_empty_set_lets_the_negative_weight_of_sig_ms_grow_to_148() -> None:
    S = torch.eye(2, dtype=torch.float64) + (1 - torch.eye(2, dtype=torch.float64)) * 1.0
    W = evaluate("goal:pair=sig-ms,variant=released", S).W
    assert float(W.max()) == pytest.approx(148.413, rel=1e-5)


@each("variant, m_plus, m_minus", [("paper", 0.0, 0.0), ("released", -0.25, 0.25)])
def test_ties_are_outside_the_sets_of_the_paper_and_inside_those_of_the_code(
    variant: str, m_plus: float, m_minus: float
) -> None:
    """In row 0, another row's positive is s_n* + ms_eps, and a negative the smallest positive − ms_eps."""
    S = torch.tensor([[0.25, 0.125, 0.375], [0.0, 0.5, 0.0], [0.0, 0.0, 0.875]], dtype=torch.float64)
    W = evaluate(f"goal:triplet=con,pair=lin-ms,ms_eps=0.125,margin=1,variant={variant}", S).W
    assert W[0].tolist() == [-(1 - m_plus) * 0.75, 0.0, (1 + m_minus) * 0.375]


def test_smoothap_of_one_positive_and_one_negative_is_a_rank_of_two() -> None:
    match = torch.tensor([[True, False]])
    S = torch.tensor([[0.31, 0.3]], dtype=torch.float64)
    values = build("objectives", "smoothap:tau=0.01")(S, Mask(match, match | True)).values
    G = 1 / (1 + torch.tensor(1.0, dtype=torch.float64).exp())
    assert_same(values, (1 - 1 / (1 + G)).reshape(1))
