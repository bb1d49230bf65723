"""Watch `lossscope.Loss`, alone or in the form of sentence-transformers, by the batch that it weighs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from lossscope.core.sides import Sides
from lossscope.core.types import DIRECTIONS
from lossscope.engine.direction_rows import DirectionRows
from lossscope.objectives.base import Gradient, Objective
from lossscope.training.loss_batch import LossBatch

from .observed import Observed, Result
from .recording import record_calls

_MODULES = ("lossscope.training.loss_module", "lossscope.training.sentence_loss")  # not imported: that takes a second


@dataclass(frozen=True)
class ObjectiveLoss:
    """W of the objective of the loss, at its present scale and bias."""

    loss: Any  # lossscope.Loss, or its form for sentence-transformers
    sides: Sides | None = None  # None: those of the call

    def call(self, loss: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Result:
        """Return the result of `loss`, which may wrap this loss, and what this loss saw."""
        observed: list[Observed] = []
        weighing = self.loss if hasattr(self.loss, "of_batch") else self.loss.loss
        objective = weighing.objective

        def on_batch(args: tuple[Any, ...], kwargs: Mapping[str, Any], value: Tensor) -> None:
            observed.append(self._observed(args[0], objective, value.detach()))

        with record_calls(weighing, "of_batch", on_batch):
            return loss(*args, **kwargs), observed

    def _observed(self, batch: LossBatch, objective: Objective, value: Tensor) -> Observed:
        sides = batch.sides if self.sides is None or self.sides.is_one_set != batch.sides.is_one_set else self.sides
        is_single = sides.is_one_set or not batch.is_mutual
        n, m = batch.mask.match.shape  # without offline candidates
        queries, candidates = (None, None) if batch.embeddings is None else (x.detach() for x in batch.embeddings)
        if (n, m) != batch.S.shape:
            queries, candidates = (None if x is None else x[:size] for x, size in ((queries, n), (candidates, m)))
        rows = DirectionRows(batch.S.detach()[:n, :m], batch.mask, queries, candidates)
        numbers = {} if isinstance(objective, Gradient) else {"loss": value}  # a stated gradient has none
        return Observed(
            rows, sides, DIRECTIONS[:1] if is_single else DIRECTIONS, objective=objective, numbers=numbers
        ).limited()


def is_objective_loss(loss: Any) -> bool:
    """Return whether a loss is `lossscope.Loss`, or its form for sentence-transformers."""
    return any(cls.__module__ in _MODULES for cls in type(loss).__mro__)
