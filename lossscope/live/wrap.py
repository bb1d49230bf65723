"""Wrap a loss: it computes the same, and every training call is watched."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any, NamedTuple, cast

import torch
from torch import nn

from lossscope.core.sides import Sides
from lossscope.errors import InputError
from lossscope.objectives.base import Objective

from .called_losses import CalledLoss
from .clip_losses import ClipLoss, is_clip_loss
from .metric_losses import MetricLoss, innermost
from .objective_losses import ObjectiveLoss, is_objective_loss
from .observed import Scope
from .sentence_losses.base import class_names
from .sentence_losses.record import SentenceLoss

Recorder = (
    ObjectiveLoss | SentenceLoss | MetricLoss | ClipLoss | CalledLoss
)  # sees the inputs of a loss during its call


class Watch(NamedTuple):
    """What a wrapped loss has beside the attributes of the loss."""

    loss: nn.Module  # that is not watched, with the same attributes
    scope: Scope  # keeps the statistics
    recorder: Recorder

    @property
    def given(self) -> Any:
        """The function or module that was wrapped."""
        return self.loss.function if isinstance(self.loss, FunctionModule) else self.loss


class Watched:
    """A call of the loss that is watched; `watch_loss` builds a class of this one and that of the loss.

    Both losses have one `__dict__`: parameters, buffers, hooks, mode, and whatever is written to either, are those of
    the other. Calls under torch.no_grad() or in eval() mode are no steps.
    """

    __slots__ = ()
    lossscope_watch: Watch  # a slot of the built class, so it is no attribute of the loss

    def __init_subclass__(cls) -> None:
        """Leave out that of the loss, which may register its subclasses or need arguments."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the loss, and record the statistics of a watched training step."""
        loss, scope, recorder = self.lossscope_watch
        step = scope.next_step() if loss.training and torch.is_grad_enabled() else None
        if step is None:
            return loss(*args, **kwargs)
        value, observed = recorder.call(loss, args, kwargs)
        if observed:
            scope.record(observed, step)
        return value

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Return how to copy and pickle: the built class is in no file."""
        return _restore, tuple(self.lossscope_watch)

    def __copy__(self) -> Any:
        """Return a watched shallow copy, with attributes of its own as those of any module."""
        loss, scope, recorder = self.lossscope_watch
        return _restore(copy.copy(loss), scope, recorder)

    def _replicate_for_data_parallel(self) -> Any:
        """Raise InputError: replicas run in threads, each with a part of the batch."""
        raise InputError(
            "a wrapped loss must see whole batches; got one in torch.nn.DataParallel, which gives each device a part. "
            "Call it outside of DataParallel, or use DistributedDataParallel"
        )


class FunctionModule(nn.Module):
    """A function, or an object with __call__, as a module; attributes are read, written and deleted on it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        vars(self)["function"] = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return self.function(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == "function":  # not there yet, while it is copied
                raise
            return getattr(self.function, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if self._is_of_module(name):
            super().__setattr__(name, value)
        else:
            setattr(self.function, name, value)

    def __delattr__(self, name: str) -> None:
        if self._is_of_module(name):
            super().__delattr__(name)
        else:
            delattr(self.function, name)

    def _is_of_module(self, name: str) -> bool:
        return name in vars(self) or hasattr(nn.Module, name) or name.startswith("_")


def watch_loss(
    loss: Callable[..., Any], scope: Scope, objective: Objective | None = None, sides: Sides | None = None
) -> Any:
    """Return the loss as a module of its class whose training calls are watched; the loss itself stays unwatched.

    W is that of `forward`: a forward hook that returns another value than the loss is called, but W leaves it out.

    Args:
        loss: a function or module; of a watched one the loss is watched anew.
        scope: keeps the statistics.
        objective: of the probes; None: the loss itself.
        sides: names of both sides; None: the usual names for the loss.
    """
    given: Any = loss.lossscope_watch.given if isinstance(loss, Watched) else loss
    module = given if isinstance(given, nn.Module) else FunctionModule(given)
    return _restore(module, scope, _recorder_of(given, objective, sides))


def _restore(loss: nn.Module, scope: Scope, recorder: Recorder) -> nn.Module:
    """Return the watched form of a module, with its `__dict__`."""
    watched = object.__new__(_class_of(cast(Hashable, type(loss))))
    object.__setattr__(watched, "__dict__", loss.__dict__)  # not by setattr, which modules overload
    object.__setattr__(watched, "lossscope_watch", Watch(loss, scope, recorder))
    return cast(nn.Module, watched)


@lru_cache(maxsize=64)
def _class_of(key: Hashable) -> type[Watched]:
    """Return a class under the same name whose calls are watched: isinstance holds, as do checks of names."""
    cls = cast(type, key)
    attributes = {"__slots__": ("lossscope_watch",), "__module__": cls.__module__, "__doc__": cls.__doc__}
    return cast(type[Watched], type(cls)(cls.__name__, (Watched, cls), attributes))


def _recorder_of(loss: Any, objective: Objective | None, sides: Sides | None) -> Recorder:
    is_objective = objective is None
    if is_objective_loss(loss):
        return ObjectiveLoss(loss, sides)
    if class_names(loss):
        return SentenceLoss(loss, is_objective, sides)
    if (metric := innermost(loss)) is not None:
        return MetricLoss(metric, is_objective, sides)
    if is_clip_loss(loss):
        return ClipLoss(loss, sides)
    return CalledLoss(loss, objective, sides)
