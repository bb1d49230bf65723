"""Hold a step of a running loop for the doctor and the flight recorder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt
from torch import Tensor

from lossscope.objectives.base import Objective

from .observed import Observed, Row

Ids = Sequence[object] | Tensor | npt.NDArray[Any]
BothIds = tuple[Ids | None, Ids | None]  # ids of the items of both sides; None: unknown


@dataclass(frozen=True)
class WatchedStep:
    """A step, its batch, and its known numbers."""

    number: int
    batch: Observed  # with rows
    objective: Objective | None  # of the training; None: only the value of the loss is known
    finite: bool  # whether its similarities and embeddings are finite
    row: Row = field(default_factory=dict)  # its statistics
    logged: Row = field(default_factory=dict)  # numbers that the loop logs
    ids: BothIds = (None, None)
    is_trained: bool = False  # whether the objective is known to be the trained loss

    @property
    def scale(self) -> Row:
        """The scale and bias of the loss call, where the loss itself is watched."""
        loss = self.batch.objective if self.batch.objective is self.objective else None
        tau = getattr(loss, "tau", None)
        scale = 1 / tau if isinstance(tau, float) else getattr(loss, "scale", getattr(loss, "logit_scale", None))
        bias = getattr(loss, "bias", getattr(loss, "logit_bias", None))
        given = {"logit_scale": scale, "logit_bias": bias}
        return {name: float(value) for name, value in given.items() if isinstance(value, int | float)}
