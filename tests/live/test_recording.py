"""Does recording see the calls inside an object, and leave the object as it was?"""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from lossscope.live.recording import Call, gradients_of, record_calls, replace_function, unchanged_random_state


class Loss(nn.Module):
    """A loss whose similarities are a method, an attribute and a module."""

    def __init__(self) -> None:
        super().__init__()
        self.attribute = torch.mm
        self.module = nn.Identity()

    def method(self, x: Tensor) -> Tensor:
        return x * 2

    def forward(self, x: Tensor) -> Tensor:
        return self.module(self.attribute(self.method(x), x)).sum()


@pytest.mark.parametrize(("name", "inputs"), [("method", 1), ("attribute", 2), ("module", 1)])
def test_every_kind_of_attribute_is_seen_and_left_alone(name: str, inputs: int) -> None:
    loss, x = Loss(), torch.eye(3)
    before = dict(vars(loss)), getattr(loss, name)
    seen: list[int] = []
    with record_calls(loss, name, lambda args, kwargs, result: seen.append(len(args))):
        value = loss(x)
    assert seen == [inputs] and torch.equal(value, loss(x)) and seen == [inputs]
    assert vars(loss).keys() == before[0].keys() and getattr(loss, name) == before[1]
    assert not loss.module._forward_hooks


def test_an_error_in_the_loss_leaves_it_alone_too() -> None:
    loss = Loss()
    with pytest.raises(RuntimeError), record_calls(loss, "method", lambda *_: None):
        loss(torch.zeros(2, 3, 4))
    assert "method" not in vars(loss)
    with replace_function(loss, "method", lambda x: x), replace_function(loss, "method", lambda x: -x):
        assert loss.method(torch.ones(1)) == -1
    assert loss.method(torch.ones(1)) == 2


def test_gradients_are_those_of_the_graph_which_is_kept() -> None:
    x = torch.randn(3, 4, requires_grad=True)
    used, unused, plain = x * 2, x * 3, torch.ones(2)
    value = used.square().sum()
    gradients = gradients_of(value, [Call((), used), Call((), unused), Call((), plain)])
    assert torch.equal(gradients[0], 2 * used.detach()) and not gradients[1].any() and not gradients[2].any()
    assert x.grad is None
    value.backward()
    assert torch.equal(x.grad, 8 * x.detach())  # type: ignore[arg-type]
    assert not gradients_of(torch.ones(()), [Call((), used)])[0].any()


def test_random_generators_are_left_as_they_are() -> None:
    def numbers() -> tuple[float, float, float]:
        return float(torch.rand(1)), float(np.random.rand()), random.random()  # noqa: NPY002 - what losses draw from

    with unchanged_random_state():
        first = numbers()
    assert numbers() == first
    assert numbers() != first
