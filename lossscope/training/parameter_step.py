"""θ' = θ − h · |θ| · g / |g|: take one step of a relative length along a gradient, and put the parameters back."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from lossscope.errors import InputError


def trained_parameters(model: nn.Module) -> list[nn.Parameter]:
    """Return the parameters that training changes. Raises InputError where there are none, or all of them are 0."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if not norm_of(trained) > 0:
        raise InputError("the model must have trained parameters that are not all 0, whose norm is the unit of a step")
    return trained


def norm_of(tensors: Sequence[Tensor | None]) -> float:
    """Return the Euclidean norm of all numbers of all tensors, in float64; None counts as zeros."""
    return math.sqrt(sum(float(x.detach().double().square().sum()) for x in tensors if x is not None))


@contextlib.contextmanager
def one_step(parameters: Sequence[nn.Parameter], gradient: Sequence[Tensor | None], length: float) -> Iterator[None]:
    """Move parameters against a gradient inside, and put their bits back at the end, also after an error or Ctrl-C.

    Args:
        parameters: θ, all of them together.
        gradient: g of each; None counts as zeros.
        length: h, the length of the step as a share of |θ|.

    Raises:
        InputError: |g| is 0 or not finite: there is no direction.
    """
    norm = norm_of(gradient)
    if not 0 < norm < math.inf:
        raise InputError(f"the gradient of a step must have a norm above 0 that is finite; got {norm}")
    scale = length * norm_of(parameters) / norm
    kept = [parameter.detach().clone() for parameter in parameters]
    try:
        with torch.no_grad():
            for parameter, of_parameter in zip(parameters, gradient, strict=True):
                if of_parameter is not None:  # in float64: half precision would round most of the step away
                    parameter.copy_(parameter.double() - scale * of_parameter.double())
        yield
    finally:
        with torch.no_grad():
            for parameter, values in zip(parameters, kept, strict=True):
                parameter.copy_(values)
