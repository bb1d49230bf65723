"""Any loss of sentence-transformers by its columns: queries, positives, negatives; for an objective that is named."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from lossscope.core.sides import Sides
from lossscope.errors import InputError

from ..batch_inputs import BatchInputs
from ..observed import Observed
from .base import LossCall


@dataclass(frozen=True)
class ColumnsLoss:
    """Reads the embeddings that a loss computes from: the first column is queries, the others are documents."""

    loss: Any

    def recorded(self) -> tuple[Any, str]:
        return self.loss, "compute_loss_from_embeddings"

    def keeps_gradients(self) -> bool:
        return False

    def similarities(self) -> int:
        return 1

    def reads_argument(self) -> bool:
        return False

    def observed(self, call: LossCall, sides: Sides, name: str, own: bool) -> Observed:
        columns = call.calls[0].args[0] if call.calls else []
        if len(columns) < 2:
            raise InputError(f"{type(self.loss).__name__} must have two columns or more; got {len(columns)}")
        queries, documents = columns[0].detach(), torch.cat([column.detach() for column in columns[1:]])
        observed = BatchInputs(queries=queries, documents=documents).rows(sides).observed()
        return Observed(observed.rows, sides, observed.directions, observed.second, name=name)
