"""Copies of the user's loss, so that trial batches leave nothing in the user's own object."""

from __future__ import annotations

import copy
import types
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from lossscope.errors import InputError

_SMALL = 1_000_000  # numbers of a module that is copied at each call
_HOOKS = ("_forward_hooks", "_backward_hooks", "_backward_pre_hooks")  # those for arguments may compute weights


def is_small(module: nn.Module) -> bool:
    """Whether copying a module at each call costs little."""
    return sum(x.numel() for x in module.state_dict().values() if isinstance(x, Tensor)) <= _SMALL


def copy_in_float64(loss: Callable[..., Any], label: str) -> Callable[..., Any]:
    """Return a copy of an object with a state, modules in float64; a function is returned as it is.

    What a loss kept of its last call with a graph, as in `self.last = loss`, is copied without the graph. The copy of a
    module has none of its hooks for results and gradients, which would see trial batches. An object that cannot be
    copied is returned itself, with a warning.

    Args:
        loss: function, method or object.
        label: its name in messages.

    Raises:
        InputError: a module that cannot be copied, as it would have to be converted itself.
    """
    holder = _holder(loss)
    if holder is None:
        return loss
    try:
        copied = copy.deepcopy(loss, _without_graphs(holder))
    except Exception as error:
        if isinstance(holder, nn.Module):
            raise InputError(
                f"{label} must be a module that copy.deepcopy can copy, since trial batches run on a copy of it; "
                f"it raised {type(error).__name__}: {error}. Move what copy.deepcopy refuses out of the module"
            ) from error
        _warn(label, error)
        return loss
    copied_holder = _holder(copied)
    if isinstance(copied_holder, nn.Module):
        copied_holder.double()
        for hooks in _HOOKS:
            vars(copied_holder).get(hooks, {}).clear()
    return copied


def _holder(loss: Any) -> Any:
    """Return the object whose state a call can change; None for a function, which has none that could be copied."""
    if isinstance(loss, partial):
        return _holder(loss.func)
    if isinstance(loss, types.MethodType):
        return None if isinstance(loss.__self__, type) else loss.__self__
    is_plain = isinstance(loss, types.FunctionType | types.BuiltinFunctionType | type | torch.jit.ScriptFunction)
    return None if is_plain else loss


def _without_graphs(holder: Any) -> dict[int, Any]:
    """Return a memo for deepcopy that replaces kept results, which have a graph, by their numbers."""
    owners: Iterable[Any] = holder.modules() if isinstance(holder, nn.Module) else [holder]
    kept = (value for owner in owners for value in getattr(owner, "__dict__", {}).values())
    return {id(x): x.detach().clone() for x in kept if isinstance(x, Tensor) and not x.is_leaf}


def _warn(label: str, error: Exception) -> None:
    warnings.warn(
        f"copy.deepcopy refuses {label} ({type(error).__name__}: {error}), so trial batches run on the "
        "object itself. What it keeps between calls, such as a queue, will hold pairs of these batches",
        stacklevel=2,
    )
