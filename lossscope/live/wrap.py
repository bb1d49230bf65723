"""Wrap a loss: it computes the same, and every training call is watched."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import nn

from lossscope.core.sides import Sides
from lossscope.objectives.base import Objective

from .called_losses import CalledLoss
from .clip_losses import ClipLoss, is_clip_loss
from .metric_losses import MetricLoss, innermost
from .observed import Scope
from .sentence_losses.base import class_names
from .sentence_losses.record import SentenceLoss

Recorder = SentenceLoss | MetricLoss | ClipLoss | CalledLoss  # sees the inputs of a loss during its call


class WatchedLoss(nn.Module):
    """Call the loss as before; `LossScope.wrap` builds this module.

    Calls under torch.no_grad() or in eval() mode are no steps. Attributes are read, written and deleted on the loss. A
    loss of pytorch-metric-learning keeps the name of its class, by which CrossBatchMemory and others know what they
    support.

    Args:
        loss: a function or module, kept as `loss`.
        scope: keeps the statistics.
        objective: of the probes; None: the loss itself.
        sides: names of both sides; None: the usual names for the loss.
    """

    def __init__(
        self, loss: Callable[..., Any], scope: Scope, objective: Objective | None = None, sides: Sides | None = None
    ) -> None:
        super().__init__()
        inner: Any = getattr(loss, "loss") if isinstance(loss, WatchedLoss) else loss  # noqa: B009 - of any type
        self.loss, self.scope = inner, scope
        self._recorder = _recorder_of(inner, objective, sides)
        if isinstance(self._recorder, MetricLoss):
            self.__class__ = _named_as(type(inner).__name__)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Return how to copy and pickle the module: as the class of this file."""
        return _restore, (dict(self.__dict__),)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the loss, and record the statistics of a watched training step."""
        step = self.scope.next_step() if self.training and torch.is_grad_enabled() else None
        if step is None:
            return self.loss(*args, **kwargs)
        value, observed = self._recorder.call(self.loss, args, kwargs)
        if observed:
            self.scope.record(observed, step)
        return value

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == "loss":
                raise
            return getattr(self.loss, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if self._is_of_loss(name):
            setattr(self.loss, name, value)
        else:
            super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        if self._is_of_loss(name):
            delattr(self.loss, name)
        else:
            super().__delattr__(name)

    def _is_of_loss(self, name: str) -> bool:
        """Return whether an attribute belongs to the loss: all but those of this module and of nn.Module."""
        is_of_module = name in _OWN or name in vars(self) or hasattr(nn.Module, name) or name.startswith("_")
        return not is_of_module and "_recorder" in vars(self)  # set last


_OWN = ("loss", "scope")


@cache
def _named_as(name: str) -> type[WatchedLoss]:
    """Return WatchedLoss under the name of another class."""
    return type(name, (WatchedLoss,), {})


def _restore(attributes: dict[str, Any]) -> WatchedLoss:
    """Return the module with these attributes."""
    watched = WatchedLoss.__new__(WatchedLoss)
    vars(watched).update(attributes)
    if isinstance(attributes["_recorder"], MetricLoss):
        watched.__class__ = _named_as(type(watched.loss).__name__)
    return watched


def _recorder_of(loss: Any, objective: Objective | None, sides: Sides | None) -> Recorder:
    is_objective = objective is None
    if class_names(loss):
        return SentenceLoss(loss, is_objective, sides)
    if (metric := innermost(loss)) is not None:
        return MetricLoss(metric, is_objective, sides)
    if is_clip_loss(loss):
        return ClipLoss(loss, sides)
    return CalledLoss(loss, objective, sides)
