"""Are losses of single rows right: weights, margins and labels of a row, and polynomials in place of hinges?"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from lossscope.core.similarity import Mask, pair_mask
from lossscope.core.weights import both
from lossscope.errors import InputError
from lossscope.objectives.base import Objective
from lossscope.registry import build
from tests.each import each

Oracle = Callable[[str], ModuleType]
Array = Any
Q, C = 6, 8
MAPS = ("exponential", "linear", "sine")
GIVEN = ("margin", "row weight", "pair weight", "margin and row weight", "margin and pair weight")


def random_numbers(*shape: int, low: float = 0.0, high: float = 1.0, seed: int = 0) -> Tensor:
    numbers = torch.rand(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return low + (high - low) * numbers


def batch(seed: int, info: dict[str, Tensor]) -> tuple[Tensor, Mask]:
    """(Q, C) similarities from 0 to 0.6; row 2 has no positive, row 4 no negative, some candidates are not valid."""
    match = torch.zeros(Q, C, dtype=torch.bool)
    match[torch.arange(Q), random_numbers(Q, seed=seed + 50).mul(C).long()] = True
    valid = (random_numbers(Q, C, seed=seed + 60) < 0.8) | match
    valid[2] &= ~match[2]
    valid[4] = match[4]
    return random_numbers(Q, C, high=0.6, seed=seed), Mask(match, valid, info)


def info_of(given: str) -> dict[str, Tensor]:
    info = {}
    if "margin" in given:
        info["margin"] = random_numbers(Q, high=0.4, seed=7)
    if "row weight" in given:
        info["weight"] = random_numbers(Q, low=0.5, high=1.5, seed=8)
    if "pair weight" in given:
        info["weight"] = random_numbers(Q, C, low=0.5, high=1.5, seed=9)
    return info


def slow_unified(S: Array, mask: Mask, margin: float, gamma: float) -> Array:
    """(1/gamma) log(1 + Σ exp(gamma (w_n s_n − w₊ s₊ + m))) one term at a time: eq. 24 and 26."""
    match, valid = mask.match.numpy(), mask.valid.numpy()
    margins, given = mask.info.get("margin"), mask.info.get("weight")
    loss = np.zeros(len(S))
    for q in range(len(S)):
        positives = [c for c in range(S.shape[1]) if match[q, c] and valid[q, c]]
        negatives = [c for c in range(S.shape[1]) if not match[q, c] and valid[q, c]]
        if not positives or not negatives:
            continue
        p, m = positives[0], margin if margins is None else float(margins[q])
        w = np.ones(S.shape[1])
        if given is not None and given.ndim == 1:
            w[p] = float(given[q])
        elif given is not None:
            w = given[q].numpy()
        loss[q] = math.log(1 + sum(math.exp(gamma * (w[n] * S[q, n] - w[p] * S[q, p] + m)) for n in negatives)) / gamma
    return loss


def slopes(value: Callable[[Tensor], float], S: Tensor, step: float = 1e-6) -> Tensor:
    """(q, c) central differences of a sum of losses."""
    actual = torch.zeros_like(S)
    for q, c in product(*map(range, S.shape)):
        change = torch.zeros_like(S)
        change[q, c] = step
        actual[q, c] = (value(S + change) - value(S - change)) / (2 * step)
    return actual


def assert_near(actual: Tensor | None, expected: Any, tolerance: float = 1e-10) -> None:
    assert actual is not None
    torch.testing.assert_close(actual, torch.as_tensor(np.asarray(expected)).to(actual), rtol=0, atol=tolerance)


@each("given", GIVEN, "gamma", [5.0, 60.0])
def test_unified_with_weights_and_margins_of_rows_is_eq_24_and_26(given: str, gamma: float) -> None:
    unified = build("objectives", f"unified:gamma={gamma},margin=0.1")
    for seed in range(3):
        S, mask = batch(seed, info_of(given))
        weights = unified(S, mask)
        assert_near(weights.values, slow_unified(S.numpy(), mask, 0.1, gamma))
        expected = slopes(lambda s, mask=mask: slow_unified(s.numpy(), mask, 0.1, gamma).sum(), S)
        assert_near(weights.W, expected, 1e-6)


@each("given", GIVEN)
def test_w_of_unified_with_row_inputs_is_the_slope_of_its_own_values(given: str) -> None:
    unified = build("objectives", "unified:gamma=20")
    S, mask = batch(3, info_of(given))
    assert_near(unified(S, mask).W, slopes(lambda s: float(unified(s, mask).values.sum()), S), 1e-6)
    rows = mask.rows(mask.usable)
    leaf = S[mask.usable].requires_grad_()
    W = torch.autograd.grad(unified.values(leaf, rows).sum(), leaf)[0]
    assert_near(unified.closed_form(leaf.detach(), rows)[1] * rows.valid, W, 1e-12)


def test_rows_of_w_sum_to_zero_with_margins_but_not_with_weights() -> None:
    unified = build("objectives", "unified")
    for given in GIVEN:
        off = float(unified(*batch(0, info_of(given))).W.sum(1).abs().max())
        assert off > 1e-3 if "weight" in given else off < 1e-12


def test_row_inputs_equal_to_the_defaults_change_nothing() -> None:
    unified = build("objectives", "unified")
    S, plain = batch(1, {})
    unit_weights = [torch.ones(Q, dtype=torch.float64), torch.ones(Q, C, dtype=torch.float64)]
    for weight in unit_weights:
        info = {"weight": weight, "margin": torch.full((Q,), 0.2, dtype=torch.float64)}
        same, expected = unified(S, Mask(plain.match, plain.valid, info)), unified(S, plain)
        assert_near(same.W, expected.W, 1e-12)
        assert_near(same.values, expected.values, 1e-12)


def test_t2i_has_transposed_pair_weights_and_the_margins_of_its_rows() -> None:
    pairs = pair_mask(torch.arange(Q))
    S = random_numbers(Q, Q, high=0.6)
    info = {"margin": random_numbers(Q, high=0.4, seed=7), "weight": random_numbers(Q, Q, low=0.5, high=1.5, seed=9)}
    mask = Mask(pairs.match, pairs.valid, info)
    i2t, t2i = both(build("objectives", "unified:gamma=10"), S, mask)
    transposed = Mask(pairs.match, pairs.valid, {**info, "weight": info["weight"].T})
    assert_near(i2t.values, slow_unified(S.numpy(), mask, 0.2, 10.0))
    assert_near(t2i.values, slow_unified(S.T.numpy(), transposed, 0.2, 10.0))


def test_unified_with_margins_goes_to_the_ncr_hinge_of_eq_27_as_gamma_grows(oracle: Oracle) -> None:
    label = random_numbers(Q, seed=4)
    margin = 0.2 * (10**label - 1) / 9
    for seed in range(3):
        S, mask = batch(seed, {"margin": margin, "label": label})
        sharp, limit = build("objectives", "unified:gamma=1e6")(S, mask), build("objectives", "ncr")(S, mask)
        expected = oracle("ncr").values(S.numpy(), mask.match.numpy(), mask.valid.numpy(), label=label.numpy())
        assert_near(sharp.values, expected, 1e-5)
        assert_near(limit.values, expected)
        assert_near(sharp.W, limit.W, 1e-6)


@each("spec, margins", [
    ("ncr", (0.0, 0.2 * (math.sqrt(10) - 1) / 9, 0.2)),
    ("ncr:base=2,margin=0.3", (0.0, 0.3 * (math.sqrt(2) - 1), 0.3)),
    ("ncr:map=linear", (0.0, 0.1, 0.2)),
    ("ncr:map=sine", (0.0, 0.1, 0.2)),
])  # fmt: skip
def test_ncr_margins_at_labels_0_half_and_1(spec: str, margins: tuple[float, ...]) -> None:
    S = torch.tensor([[0.5, 0.2, 0.45]], dtype=torch.float64).expand(3, 3)
    match = torch.tensor([[True, False, False]]).expand(3, 3)
    mask = Mask(match, match | True, {"label": torch.tensor([0.0, 0.5, 1.0])})
    weights = build("objectives", spec)(S, mask)
    assert_near(weights.values, [max(0.0, m - 0.05) for m in margins])
    assert weights.W.tolist() == [[-1, 0, 1] if m > 0.05 else [0, 0, 0] for m in margins]


@each("map", MAPS)
def test_ncr_with_labels_equals_the_oracle(oracle: Oracle, map: str) -> None:
    label = random_numbers(Q, seed=4)
    for seed in range(3):
        S, mask = batch(seed, {"label": label})
        given = S.numpy(), mask.match.numpy(), mask.valid.numpy()
        weights = build("objectives", f"ncr:map={map},margin=0.3")(S, mask)
        assert_near(weights.values, oracle("ncr").values(*given, margin=0.3, map=map, label=label.numpy()))
        assert_near(weights.W, oracle("ncr").weights(*given, margin=0.3, map=map, label=label.numpy()))


@each("map", MAPS, "dtype", [torch.float32, torch.float64])
def test_ncr_at_label_1_or_without_labels_is_triplet_sh_to_the_last_bit(map: str, dtype: torch.dtype) -> None:
    ncr, triplet = build("objectives", f"ncr:map={map}"), build("objectives", "triplet_sh")
    for seed in range(3):
        S, mask = batch(seed, {})
        labelled = Mask(mask.match, mask.valid, {"label": torch.ones(Q)})
        for similarities in (S.to(dtype), (S * 10).round().to(dtype) / 10):
            expected = triplet(similarities, mask)
            for actual in (ncr(similarities, mask), ncr(similarities, labelled)):
                assert torch.equal(actual.W, expected.W)
                assert torch.equal(actual.values, expected.values)


@each("wrong", [-0.1, 1.2, math.nan])
def test_labels_outside_of_0_to_1_raise_saying_which(wrong: float) -> None:
    label = torch.tensor([0.5, wrong, 1.0])
    mask = Mask(torch.eye(3, dtype=torch.bool), torch.ones(3, 3, dtype=torch.bool), {"label": label})
    with pytest.raises(InputError, match=r"labels must be between 0 and 1; got .* for usable query 1"):
        build("objectives", "ncr")(torch.rand(3, 3), mask)


@each("shape", [(4,), (3, 1), (3, 3), ()])
def test_labels_of_another_shape_raise(shape: tuple[int, ...]) -> None:
    mask = Mask(torch.eye(3, dtype=torch.bool), torch.ones(3, 3, dtype=torch.bool), {"label": torch.ones(shape)})
    with pytest.raises(InputError, match=r"must be one number a query, \(3,\); got"):
        build("objectives", "ncr")(torch.rand(3, 3), mask)


@each("spec", ["ncr:margin=-1", "ncr:base=1", "ncr:base=0", "rsp:margin=-1", "ssp:margin=-0.1"])
def test_invalid_margins_and_bases_raise(spec: str) -> None:
    with pytest.raises(InputError, match="must be"):
        build("objectives", spec)


@each("margin", [0.0, 0.2, 0.5])
def test_rsp_with_the_identity_is_triplet_sh(margin: float) -> None:
    for seed in range(3):
        S, mask = batch(seed, {})
        actual, expected = (build("objectives", f"{name}:margin={margin}")(S, mask) for name in ("rsp", "triplet_sh"))
        assert torch.equal(actual.W, expected.W)
        assert_near(actual.values, expected.values, 1e-15)


def test_rsp_pulls_the_negative_where_its_polynomial_decreases() -> None:
    actual = one_row(build("objectives", "rsp:a1=1,a2=5,a3=0,margin=1"), positive=0.5, negative=0.3)
    assert actual == pytest.approx((1.0, -1.0))  # G'(−0.2) = 1 − 2 = −1


def one_row(objective: Objective, positive: float, negative: float) -> tuple[float, float]:
    """Return W on the positive and on the single negative."""
    S = torch.tensor([[positive, negative]], dtype=torch.float64)
    match = torch.tensor([[True, False]])
    W = objective(S, Mask(match, match | True)).W
    return float(W[0, 0]), float(W[0, 1])


@each("clamp, negative, weight", [
    ("parts", 0.05, -0.31),
    ("parts", 0.2, 0.0),
    ("parts", 0.3, 0.0),
    ("parts", 0.5, 0.5),
    ("sum", 0.05, -0.31),
    ("sum", 0.2, -0.04),
    ("sum", 0.3, 0.14),
    ("sum", 0.5, 0.5),
])  # fmt: skip
def test_ssp_pulls_easy_negatives_and_its_two_clamps_differ_in_between(
    clamp: str, negative: float, weight: float
) -> None:
    actual = one_row(build("objectives", f"ssp:clamp={clamp}"), positive=0.1, negative=negative)
    assert actual == pytest.approx((-0.66, weight))


@each("clamp", ["parts", "sum"])
def test_ssp_is_0_without_a_violation_and_for_positives_at_1(clamp: str) -> None:
    ssp = build("objectives", f"ssp:clamp={clamp}")
    assert one_row(ssp, positive=0.7, negative=0.49) == (0, 0)
    assert one_row(ssp, positive=0.7, negative=0.51) == pytest.approx((-0.42, 0.518))
    assert one_row(ssp, positive=1.0, negative=0.9) == (0, 0)
    assert one_row(ssp, positive=1 - 2e-5, negative=0.9) == pytest.approx((-0.3, 1.22), abs=1e-4)
