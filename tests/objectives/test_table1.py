"""Which equalities of GOAL's Table 1 hold for the registry's losses, and up to which factors?"""

from __future__ import annotations

import math

import torch
from torch import Tensor

import lossscope
from lossscope.core.similarity import Mask, pair_mask
from tests.each import each

B, TAU, ALPHA, BETA, LAM = 12, 10.0, 2.0, 10.0, 0.5
SIG = f"alpha={ALPHA},beta={BETA},lam={LAM}"
PAIRS = ("con", "lin", "sig", "lin-ms", "sig-ms")
LOSSES = {("con", pair) for pair in PAIRS} | {("nca", "con"), ("cir", "lin")}


def similarities(seed: int) -> Tensor:
    """Return (B, B) similarities between −0.4 and 0.9: a part of the pairs violate the margin."""
    random_numbers = torch.rand(B, B, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return random_numbers * 0.8 - 0.4 + 0.5 * torch.eye(B, dtype=torch.float64)


def all_pairs() -> Mask:
    return pair_mask(torch.arange(B))


def hardest(S: Tensor) -> Tensor:
    """(B, 1) column of n*."""
    return S.masked_fill(all_pairs().match, -torch.inf).argmax(1, keepdim=True)


def positive_and_hardest_mask(S: Tensor) -> Mask:
    """Return a mask in which only the positive and the hardest negative are valid."""
    match = all_pairs().match
    return Mask(match, match.scatter(1, hardest(S), True))


def W(spec: str, S: Tensor, mask: Mask | None = None) -> Tensor:
    weights: Tensor = lossscope.objective(spec)(S, mask or all_pairs()).W
    return weights


def same(actual: Tensor, expected: Tensor, tolerance: float = 1e-9) -> bool:
    return torch.allclose(actual, expected, rtol=0, atol=tolerance)


def relative_terms(weights: Tensor, S: Tensor) -> tuple[Tensor, Tensor]:
    """Return m₊ and m₋ of weights of the form 1 / (m + exp(...)), of rows with weights."""
    on, column = weights.any(1), hardest(S)
    m_plus = -1 / weights.diag() - (ALPHA * (S.diag() - LAM)).exp()
    m_minus = 1 / weights.gather(1, column) - (-BETA * (S.gather(1, column) - LAM)).exp()
    return m_plus[on], m_minus.squeeze(1)[on]


@each("seed", range(3), "margin", [0.0, 0.1, 0.2, 0.3])
def test_con_con_is_triplet_sh_in_all_candidates_to_the_last_bit(seed: int, margin: float) -> None:
    S = similarities(seed)
    for values in (S, (S * 10).round() / 10, (S * 10).round().float() / 10):
        triplet = W(f"triplet_sh:margin={margin}", values)
        assert torch.equal(W(f"goal:margin={margin}", values), triplet)
        assert triplet.any()
    assert not triplet.any(1).all()


@each("seed", range(3))
def test_con_con_as_released_has_no_margin(seed: int) -> None:
    S = similarities(seed)
    assert bool(W("goal:variant=released", S).any(1).all())
    assert not torch.equal(W("goal:variant=released", S), W("triplet_sh:margin=0.2", S))


@each("seed", range(3), "variant", ["paper", "released"], "tau", [1.0, TAU, 30.0])
def test_nca_con_is_ntxent_of_two_candidates_up_to_tau(seed: int, tau: float, variant: str) -> None:
    S = similarities(seed)
    goal = W(f"goal:triplet=nca,tau={tau},variant={variant}", S)
    assert same(W(f"ntxent:tau={1 / tau}", S, positive_and_hardest_mask(S)), tau * goal)
    assert not same(W(f"ntxent:tau={1 / tau}", S), tau * goal, 1e-3)


@each("seed", range(3), "variant, margin, other", [("paper", 0.5**0.5, 0.5), ("released", 0.5, 0.5**0.5)])
def test_cir_lin_is_circle_of_two_candidates_with_attached_factors_up_to_two_tau(
    seed: int, variant: str, margin: float, other: float
) -> None:
    S = similarities(seed)
    goal = 2 * TAU * W(f"goal:triplet=cir,pair=lin,tau={TAU},variant={variant}", S)
    circle = f"circle:gamma={TAU},margin={{}},factors={{}}"
    assert same(W(circle.format(margin, "attached"), S, positive_and_hardest_mask(S)), goal)
    assert not same(W(circle.format(margin, "held"), S, positive_and_hardest_mask(S)), goal, 1e-3)
    assert not same(W(circle.format(other, "attached"), S, positive_and_hardest_mask(S)), goal, 1e-3)
    assert not same(W(circle.format(margin, "attached"), S), goal, 1e-3)


def test_cir_lin_is_circle_only_above_minus_the_margin() -> None:
    S = torch.tensor([[0.0, -0.8]], dtype=torch.float64)
    match = torch.tensor([[True, False]])
    mask = Mask(match, match | True)
    circle = W(f"circle:gamma={TAU},margin={0.5**0.5},factors=attached", S, mask)
    goal = W(f"goal:triplet=cir,pair=lin,tau={TAU}", S, mask)
    assert float(circle[0, 1]) == 0
    assert float(goal[0, 1]) < 0


@each("seed", range(3))
def test_con_sig_has_the_weights_of_binomial_deviance_up_to_alpha_and_beta_where_con_is_one(seed: int) -> None:
    S = similarities(seed)
    deviance = W(f"binomial_deviance:alpha={ALPHA},cost={BETA / ALPHA},beta={LAM}", S, positive_and_hardest_mask(S))
    scale = torch.full_like(S, BETA).fill_diagonal_(ALPHA)
    assert same(deviance, scale * W(f"goal:pair=sig,{SIG},variant=released", S))
    paper = W(f"goal:pair=sig,{SIG}", S)
    on = paper.any(1)
    assert 0 < int(on.sum()) < B
    assert same(deviance[on], (scale * paper)[on])
    assert bool(deviance.any(1).all())


@each("seed", range(3))
def test_binomial_deviance_itself_weights_all_negatives(seed: int) -> None:
    S = similarities(seed)
    spread = W(f"binomial_deviance:alpha={ALPHA},cost={BETA / ALPHA},beta={LAM}", S)
    alone = W(f"binomial_deviance:alpha={ALPHA},cost={BETA / ALPHA},beta={LAM}", S, positive_and_hardest_mask(S))
    assert same((B - 1) * spread.gather(1, hardest(S)), alone.gather(1, hardest(S)))
    assert bool((spread > 0).sum(1).eq(B - 1).all())


@each("seed", range(3), "mining", ["true", "false"])
def test_con_sig_ms_never_has_the_m_of_multi_similarity_on_the_negative(seed: int, mining: str) -> None:
    S = similarities(seed)
    similar = W(f"multi_similarity:{SIG},mining={mining}", S)
    m_plus, m_minus = relative_terms(similar, S)
    assert same(m_plus, torch.ones_like(m_plus))
    assert float(m_minus.min()) >= 1 - 1e-9
    goal = W(f"goal:pair=sig-ms,{SIG},variant=released", S)
    assert float(relative_terms(goal, S)[1].max()) < 1
    assert float(relative_terms(goal, S)[1].min()) >= -1e-9
    on, column = similar.any(1), hardest(S)
    assert bool((goal.gather(1, column)[on] > similar.gather(1, column)[on]).all())


@each("seed", range(3))
def test_con_sig_ms_has_the_form_of_multi_similarity_at_its_m(seed: int) -> None:
    S = similarities(seed)
    similar = W(f"multi_similarity:{SIG}", S)
    _, m_minus = relative_terms(similar, S)
    rows = similar.any(1).nonzero().squeeze(1).tolist()
    assert rows
    for row, m in zip(rows, m_minus.tolist(), strict=True):
        given = W(f"goal:pair=sig-ms,{SIG},variant=released,m_plus=1,m_minus={m!r}", S)[row]
        kept = hardest(S)[row], torch.tensor(row)
        assert all(math.isclose(float(given[c]), float(similar[row, c]), abs_tol=1e-9) for c in kept)


@each("pair", PAIRS, "triplet", ["con", "nca", "cir"])
def test_which_weights_are_the_gradient_of_a_loss_of_two_similarities(triplet: str, pair: str) -> None:
    """∂w₊/∂s_n* = ∂w₋/∂s₊, by central differences, where T_con is 1."""
    options = "variant=released," if triplet == "con" else ""
    goal = f"goal:{options}triplet={triplet},pair={pair},m_plus=0.1,m_minus=0.1"
    s_pos, s_neg = torch.meshgrid(*[torch.linspace(0.05, 0.95, 19, dtype=torch.float64)] * 2, indexing="ij")
    at, step = torch.stack([s_pos.flatten(), s_neg.flatten()], 1), 1e-5
    match = torch.tensor([[True, False]]).expand(len(at), 2)

    def slope(side: int, of: int) -> Tensor:
        move = step * torch.eye(2, dtype=torch.float64)[of]
        ahead, behind = (W(goal, at + sign * move, Mask(match, match | True)) for sign in (1, -1))
        return (ahead - behind)[:, side] / (2 * step)

    apart = float((slope(0, of=1) - slope(1, of=0)).abs().max())
    assert apart < 1e-6 if (triplet, pair) in LOSSES else apart > 0.1
