"""Where SmoothAP's loss is small, are value and W those of the loss, not of the rounding of 1?"""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from lossscope.core.similarity import Mask
from lossscope.core.weights import Weights
from lossscope.registry import build
from tests.each import each

TAU = 0.01


def evaluate(S: Tensor, positives: int) -> Weights:
    match = torch.zeros(S.shape, dtype=torch.bool)
    match[:, :positives] = True
    weights: Weights = build("objectives", f"smoothap:tau={TAU}")(S, Mask(match, torch.ones_like(match)))
    return weights


@each("gap", [0.2, 0.5, 1.0, 1.5])
def test_a_loss_far_below_the_rounding_of_one_has_all_its_digits(gap: float) -> None:
    result = evaluate(torch.tensor([[0.5, 0.5 - gap]], dtype=torch.float64), positives=1)
    step = math.exp(-gap / TAU) / (1 + math.exp(-gap / TAU))  # of the negative: e⁻²⁰ to e⁻¹⁵⁰
    assert result.values is not None
    assert float(result.values[0]) == pytest.approx(step / (1 + step), rel=1e-9, abs=0)
    expected = step * (1 - step) / (TAU * (1 + step) ** 2)
    assert result.W[0].tolist() == pytest.approx([-expected, expected], rel=1e-9, abs=0)


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=4), st.lists(st.floats(-1, 1), min_size=1, max_size=6))
def test_weights_are_at_most_four_times_the_loss_over_tau(positives: list[float], negatives: list[float]) -> None:
    """Every sigmoid has a slope of at most itself / tau: C_i / R_i changes by as much with s_i, s_n and s_j each."""
    S = torch.tensor([[*positives, *negatives]], dtype=torch.float64)
    result = evaluate(S, len(positives))
    assert result.values is not None
    assert float(result.W.abs().sum()) <= 4 * float(result.values[0]) / TAU * (1 + 1e-9)
