"""Are W, values and counts of every objective the same on the device as on the CPU?"""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
import torch
from torch import Tensor

from lossscope.core.similarity import Mask, pair_mask
from lossscope.core.weights import both, reduce_weights
from lossscope.objectives.base import Objective
from lossscope.objectives.checks.trial_batches import TrialBatch, random_batch
from lossscope.registry import build, names

OBJECTIVES = names("objectives")
TOLERANCE = {torch.float64: 1e-10, torch.float32: 2e-5}  # of the largest number; sums are added in other orders
SEEDS = (0, 1)


def with_numbers(objective: Objective, batch: TrialBatch) -> TrialBatch:
    """Return the batch with every number of a pair that the objective reads."""
    of_pairs = torch.linspace(0.1, 0.9, len(batch.S), dtype=batch.S.dtype)
    info = dict.fromkeys(objective.traits.optional_info, of_pairs)
    return replace(batch, mask=replace(batch.mask, info={**batch.mask.info, **info}))


def move(batch: TrialBatch, device: torch.device) -> tuple[Tensor, Mask]:
    return batch.S.to(device), batch.mask.to(device)


def assert_near(ours: Tensor, expected: Tensor, tolerance: float) -> None:
    assert ours.dtype == expected.dtype
    limit = tolerance * max(1.0, float(expected.abs().max()) if expected.numel() else 1.0)
    torch.testing.assert_close(ours.cpu(), expected, rtol=tolerance, atol=limit, equal_nan=True)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("name", OBJECTIVES)
def test_weights_and_values(name: str, late: bool, dtype: torch.dtype, device: torch.device) -> None:
    objective = build("objectives", name)
    for seed in SEEDS:
        batch = with_numbers(objective, random_batch(objective, seed, late)).to(dtype)
        expected = objective(batch.S.clone(), batch.mask)
        S, mask = move(batch, device)
        ours = objective(S, mask)
        assert ours.W.device.type == device.type
        assert_near(ours.W, expected.W, TOLERANCE[dtype])
        assert torch.equal(ours.usable.cpu(), expected.usable)
        assert (ours.values is None) == (expected.values is None)
        if expected.values is not None and ours.values is not None:
            assert_near(ours.values, expected.values, TOLERANCE[dtype])


@pytest.mark.parametrize("name", OBJECTIVES)
def test_counts(name: str, device: torch.device) -> None:
    objective = build("objectives", name)
    for seed in SEEDS:
        batch = with_numbers(objective, random_batch(objective, seed))
        for convention in objective.traits.conventions:
            expected = objective.counts(batch.S.clone(), batch.mask, 0.01, convention)
            S, mask = move(batch, device)
            ours = objective.counts(S, mask, 0.01, convention)
            for field in fields(expected):
                actual, on_cpu = getattr(ours, field.name), getattr(expected, field.name)
                if on_cpu.dtype == torch.bool:
                    assert torch.equal(actual.cpu(), on_cpu)
                else:
                    assert_near(actual, on_cpu, 1e-10)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_gradient_of_a_batch_of_both_directions(name: str, device: torch.device) -> None:
    objective = build("objectives", name)
    batch = random_batch(objective, 3)
    if not objective.traits.square:
        batch = TrialBatch(batch.S, pair_mask(torch.arange(len(batch.S))))
    batch = with_numbers(objective, batch)
    expected = reduce_weights(both(objective, batch.S, batch.mask), objective.traits.directions, "mean", len(batch.S))
    S, mask = move(batch, device)
    ours = reduce_weights(both(objective, S, mask), objective.traits.directions, "mean", len(batch.S))
    assert_near(ours.gradient, expected.gradient, 1e-10)
