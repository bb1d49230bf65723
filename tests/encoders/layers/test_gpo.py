"""The pooling operator: its weights depend on the size alone, and its limits are the mean and the identity."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from lossscope.encoders.layers.gpo import GPO, position_codes
from tests.each import each

LENGTHS = torch.tensor([5, 1, 7, 5, 3])


def pooling(seed: int = 0) -> GPO:
    torch.manual_seed(seed)
    gpo = GPO()
    nn.init.normal_(gpo.linear.weight)
    return gpo


def features(width: int = 6) -> Tensor:
    return torch.randn(len(LENGTHS), 7, width, generator=torch.Generator().manual_seed(1))


def numbers(module: nn.Module) -> dict[str, np.ndarray]:
    return {name: tensor.double().numpy() for name, tensor in module.state_dict().items()}


def test_position_codes_are_those_of_the_oracle(oracle: Callable[[str], ModuleType]) -> None:
    assert np.allclose(position_codes(9, 32).numpy(), oracle("gpo").position_codes(9, 32), atol=1e-5)


def test_ragged_sets_are_pooled_as_one_at_a_time(oracle: Callable[[str], ModuleType]) -> None:
    gpo, sets = pooling(), features()
    with torch.no_grad():
        pooled, theta = gpo(sets, LENGTHS), gpo.weights(LENGTHS, 7)
    for row, length in enumerate(LENGTHS.tolist()):
        expected = oracle("gpo").pooled(sets[row, :length].double().numpy(), numbers(gpo))
        assert np.allclose(pooled[row].numpy(), expected, atol=1e-5)
        assert np.allclose(theta[row, :length].numpy(), oracle("gpo").weights(length, numbers(gpo)), atol=1e-5)


def test_weights_sum_to_one_and_are_exactly_zero_on_padding() -> None:
    theta = pooling().weights(LENGTHS, 7).detach()
    assert torch.allclose(theta.sum(1), torch.ones(5))
    assert bool((theta[torch.arange(7) >= LENGTHS[:, None]] == 0).all())
    assert float(theta[2].std()) > 1e-3
    assert torch.equal(theta[0], theta[3])


def test_zero_score_weights_give_the_mean_of_present_vectors() -> None:
    gpo, sets = pooling(), features()
    nn.init.zeros_(gpo.linear.weight)
    pooled = gpo(sets, LENGTHS)
    for row, length in enumerate(LENGTHS.tolist()):
        assert torch.allclose(pooled[row], sets[row, :length].mean(0), atol=1e-6)


def test_a_set_of_one_is_left_as_it_is() -> None:
    sets = features()
    assert torch.equal(pooling()(sets, LENGTHS)[1], sets[1, 0])


def test_the_order_of_a_set_does_not_matter() -> None:
    gpo, sets = pooling(), features()
    turned = sets.clone()
    turned[2] = sets[2].flip(0)
    turned[0, :5] = sets[0, [3, 0, 4, 2, 1]]
    assert torch.allclose(gpo(sets, LENGTHS), gpo(turned, LENGTHS), atol=1e-6)


@each("fill", [0.0, 1e6, -1e6, 9e9])
def test_neither_padding_nor_the_batch_changes_the_result(fill: float) -> None:
    gpo, sets = pooling(), features()
    longer = torch.nn.functional.pad(sets, (0, 0, 0, 4), value=fill)
    longer[:, :7][torch.arange(7) >= LENGTHS[:, None]] = fill
    with torch.no_grad():
        whole = gpo(sets, LENGTHS)
        assert torch.allclose(whole, gpo(longer, LENGTHS), atol=1e-6)
        assert torch.allclose(whole[:2], gpo(sets[:2], LENGTHS[:2]), atol=1e-6)


def test_values_far_below_the_originals_marker_are_sorted_too() -> None:
    sets = torch.tensor([[[-1e5], [-3e5], [7e8]]])
    gpo = pooling()
    nn.init.zeros_(gpo.linear.weight)
    assert torch.allclose(gpo(sets, torch.tensor([2])), torch.tensor([[-2e5]]))


def test_the_gradient_reaches_features_and_parameters_and_not_the_padding() -> None:
    gpo, sets = pooling(), features().requires_grad_()
    (gpo(sets, LENGTHS) ** 2).sum().backward()
    assert sets.grad is not None
    assert bool((sets.grad[torch.arange(7) >= LENGTHS[:, None]] == 0).all())
    assert bool((sets.grad[0, :5] != 0).all())
    assert all(p.grad is not None and bool(p.grad.any()) for p in gpo.parameters())


def test_position_codes_are_computed_once_until_a_longer_set_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    gpo, sets, computed = pooling(), features(), []

    def counted(length: int, width: int) -> Tensor:
        computed.append(length)
        return position_codes(length, width)

    monkeypatch.setattr("lossscope.encoders.layers.gpo.position_codes", counted)
    names = set(gpo.state_dict())
    first = gpo(sets, LENGTHS)
    assert torch.equal(gpo(sets, LENGTHS), first) and computed == []
    long = torch.randn(1, 90, 6)
    for length in (90, 90, 70):
        gpo(long[:, :length], torch.tensor([length]))
    assert computed == [90]
    assert torch.equal(gpo(sets, LENGTHS), first)
    assert torch.equal(gpo.codes, position_codes(90, 32)) and set(gpo.state_dict()) == names
    with torch.inference_mode():
        gpo(torch.randn(1, 120, 6), torch.tensor([120]))
    gpo(sets, LENGTHS).sum().backward()  # codes that evaluation computed must not hinder training
    assert gpo.double().weights(LENGTHS, 7).dtype == torch.float64
