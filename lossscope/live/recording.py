"""Record the calls of a function or module of another object, which runs unchanged."""

from __future__ import annotations

import functools
import inspect
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from lossscope.errors import UnsupportedLoss

OnCall = Callable[[tuple[Any, ...], Mapping[str, Any], Any], None]  # (args, kwargs, result)


@contextmanager
def record_calls(owner: Any, name: str, on_call: OnCall) -> Iterator[None]:
    """Call on_call(args, kwargs, result) after each call of an attribute of an object, until the context ends.

    A module gets a forward hook; a function is replaced, on this object only, by a function that calls it.
    """
    target = getattr(owner, name)
    if isinstance(target, nn.Module):
        hook = target.register_forward_hook(
            lambda _, args, kwargs, result: on_call(args, kwargs, result), with_kwargs=True
        )
        try:
            yield
        finally:
            hook.remove()
        return

    @functools.wraps(target, updated=())
    def recorded(*args: Any, **kwargs: Any) -> Any:
        result = target(*args, **kwargs)
        on_call(args, kwargs, result)
        return result

    with replace_function(owner, name, recorded):
        yield


@contextmanager
def replace_function(owner: Any, name: str, function: Callable[..., Any]) -> Iterator[None]:
    """Set a function or method on one object, until the context ends."""
    attributes = vars(owner)  # not by setattr, which modules overload
    was_there, before = name in attributes, attributes.get(name)
    attributes[name] = function
    try:
        yield
    finally:
        if was_there:
            attributes[name] = before
        else:
            attributes.pop(name, None)


def bound_arguments(
    parameters: Mapping[str, inspect.Parameter], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return parameter -> argument of a call, in the order of the parameters.

    Arguments of `*args` have their number in the name. Raises TypeError for a call that the function would refuse.
    """
    bound = inspect.Signature(list(parameters.values())).bind(*args, **kwargs)
    arguments: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        kind = parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            arguments |= {f"{name}[{index}]": item for index, item in enumerate(value)}
        elif kind is inspect.Parameter.VAR_KEYWORD:
            arguments |= value
        else:
            arguments[name] = value
    return arguments


@dataclass(eq=False)
class Call:
    """A call of a similarity or distance inside a loss."""

    args: tuple[Any, ...]
    result: Tensor  # with its graph, as the loss uses it
    gradients: list[Tensor] = field(default_factory=list)  # dL/dresult, for a loss that is backpropagated at once

    def keep_gradient(self) -> None:
        """Keep the gradient of the result when the loss is backpropagated."""
        if self.result.requires_grad:
            self.result.register_hook(self.gradients.append)  # type: ignore[no-untyped-call]


def gradients_of(value: Tensor, calls: list[Call]) -> list[Tensor]:
    """Return dL/dresult of each call and keep the graph of the training step; zeros where L does not depend on it.

    Nothing accumulates in leaves: the step's own backward finds everything unchanged.
    """
    if any(call.gradients for call in calls):
        return [sum(call.gradients, torch.zeros_like(call.result)).detach() for call in calls]
    return gradients_in_graph([value], [call.result for call in calls])


def gradients_in_graph(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor], factors: Sequence[Tensor] | None = None
) -> list[Tensor]:
    """Return d(Σ factor · output)/dinput of each input, and keep the graph; zeros without a gradient."""
    if factors is not None:  # not as grad_outputs, with which torch imports sympy, a third of a second
        outputs = [(factor * output).sum() for factor, output in zip(factors, outputs, strict=True)]
    needed = [x for x in inputs if x.requires_grad]
    by_input: dict[int, Tensor | None] = {}
    if needed and outputs and outputs[0].requires_grad:
        try:
            gradients = torch.autograd.grad(outputs, needed, retain_graph=True, allow_unused=True)
        except RuntimeError as error:
            raise UnsupportedLoss(
                f"a watched loss must have a graph that autograd can run; its own backward would fail as well: "
                f"{str(error).splitlines()[0]}"
            ) from error
        by_input = {id(x): gradient for x, gradient in zip(needed, gradients, strict=True)}
    chosen = [by_input.get(id(x)) for x in inputs]
    return [torch.zeros_like(x) if g is None else g.detach() for x, g in zip(inputs, chosen, strict=True)]


@contextmanager
def unchanged_random_state() -> Iterator[None]:
    """Restore the generators of Python, numpy and torch when the context ends."""
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002 - the user's losses draw from it
    try:
        uses_gpus = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
        with torch.random.fork_rng(range(torch.cuda.device_count()) if uses_gpus else ()):
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002
