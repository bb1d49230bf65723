"""Is a softmax beyond the range of floats refused? Its counts would be 0 where a negative has probability 1."""

from __future__ import annotations

import pytest
import torch

import lossscope
from lossscope.errors import InputError
from tests.each import each


def _counts(tau: float, S: torch.Tensor) -> float:
    row = lossscope.LossScope(f"ntxent:tau={tau!r}", probes=("cocos",)).watch(S)
    assert row is not None
    return float(row["i2t/C_neg"])


@each("tau", [1e-8, 1e-7, 1e7, 1e38])
def test_temperatures_that_floats_cannot_count_with_are_refused(tau: float) -> None:
    with pytest.raises(InputError, match=r"the scale of a softmax, 1/tau, must be in"):
        _counts(tau, torch.rand(4, 4))


def test_similarities_of_another_size_are_refused() -> None:
    with pytest.raises(InputError, match=r"similarities around 1e\+10 .* too large for float32"):
        _counts(0.1, 1e10 * (1 - torch.eye(4)))


@each("tau", [1e-6, 1e-3, 1e3])
def test_the_hardest_negative_counts_at_every_temperature_that_is_taken(tau: float) -> None:
    S = torch.full((4, 4), 0.1)
    S[:, 0], S[0, 1] = 0.9, 0.9
    S.fill_diagonal_(0.2)
    assert _counts(tau, S) >= 1
