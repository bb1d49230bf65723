"""One step of a running loop, as the doctor and the flight recorder see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt
from torch import Tensor

from lossscope.objectives.base import Objective

from .observed import Observed, Row

Ids = Sequence[object] | Tensor | npt.NDArray[Any]
BothIds = tuple[Ids | None, Ids | None]  # of the items of both sides; None: they are not known


@dataclass(frozen=True)
class WatchedStep:
    """A step, its batch, and what is known of it."""

    number: int
    batch: Observed  # with rows
    objective: Objective | None  # that it trains with; None: the loss is known by its value alone
    finite: bool  # whether its similarities and embeddings are
    row: Row = field(default_factory=dict)  # its statistics
    said: Row = field(default_factory=dict)  # numbers that the loop knows of it
    ids: BothIds = (None, None)
    is_trained: bool = False  # whether the objective is known to be what is trained, not one to look with

    @property
    def scale(self) -> Row:
        """The scale and bias that the loss is called with, where it is the loss itself that is watched."""
        loss = self.batch.objective if self.batch.objective is self.objective else None
        tau = getattr(loss, "tau", None)
        scale = 1 / tau if isinstance(tau, float) else getattr(loss, "scale", getattr(loss, "logit_scale", None))
        bias = getattr(loss, "bias", getattr(loss, "logit_bias", None))
        given = {"logit_scale": scale, "logit_bias": bias}
        return {name: float(value) for name, value in given.items() if isinstance(value, int | float)}
