"""Parameter gradients: how large is the gradient of the loss in each layer of the model?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from lossscope.core.types import Reduction
from lossscope.core.weights import Weights, reduction_scale
from lossscope.errors import InputError
from lossscope.objectives.base import Objective

from .base import Accumulator, Accumulators, Axis, Probe, Reads, Statistic
from .views.view import View

_TOTAL = "gradient_norm"


@dataclass(frozen=True)
class ParameterGradients(Probe):
    """|dL/dθ| of each layer and of the whole model, L the training loss of one direction of a batch.

    L = directions · R(summed query losses), R the reduction. The model's gradient is the sum of the gradients of both
    directions, whose norms do not add up. The model is in eval mode: without dropout, and with the learnt statistics of
    batch norm. Columns: gradient_norm = √Σ of the squares, and a column for each layer under its name.

    Raises InputError where the source has no model, or a batch is processed in several views.
    """

    reduction: Reduction | None = None  # sum, mean, pairs or cells of the query losses; none: that of the objective
    axis: ClassVar[Axis] = "layer"
    reads: ClassVar[frozenset[Reads]] = frozenset({"rows", "gradients"})
    needs_objective: ClassVar[bool] = True

    def tile(self, view: View) -> Accumulators:
        gradients = view.rows.gradients
        if gradients is None:
            raise InputError(
                "parameter_gradients needs the model itself, which this source does not have; use a checkpoint, or "
                "leave the probe out"
            )
        if not view.shape.has_all_queries or view.shape.batches != 1:
            raise InputError(
                f"parameter_gradients needs a batch in one piece; a batch of {view.shape.candidates} candidates comes "
                "in several. Use a smaller --batch-size"
            )
        norms = gradients(view.W * self._scale(view))
        return {name: Accumulator(norm.reshape(1)) for name, norm in norms.items()}

    def finish(self, accumulators: Accumulators) -> dict[str, Tensor]:
        layers = {name: part.value for name, part in accumulators.items()}
        return {_TOTAL: torch.stack(list(layers.values())).square().sum(0).sqrt(), **layers}

    def statistics(self, objective: Objective | None) -> tuple[Statistic, ...]:
        return (Statistic(_TOTAL, _TOTAL, "mean", "norm"),)

    def layers(self, columns: Mapping[str, Tensor]) -> tuple[Statistic, ...]:
        """Return a statistic for each layer; the names of the layers depend on the model."""
        return tuple(Statistic(name, name, "mean", "norm") for name in columns if name != _TOTAL)

    def _scale(self, view: View) -> float:
        shape, objective = view.shape, view.objective
        pairs = shape.queries if shape.direction == "t2i" else shape.candidates
        reduction = self.reduction or objective.traits.reduction
        return objective.traits.directions * reduction_scale(Weights(view.W, None, ~view.skipped), reduction, pairs)
