"""Read GISTEmbedLoss, plain or cached: a softmax without candidates that a guide finds nearer than the positive."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from lossscope.core.similarity import Mask
from lossscope.engine.direction_rows import DirectionRows
from lossscope.registry import build

from ..observed import Observed
from .base import LossCall, LossReader


def guided_loss(loss: Any) -> LossReader:
    """Return the reader of GISTEmbedLoss, which reads the scores of its cross-entropy."""
    return LossReader(loss, partial(_observed, loss), "cross_entropy_loss", reads_argument=True)


def _observed(loss: Any, call: LossCall) -> Observed:
    """Return the scores, −inf where the guide left a candidate out.

    A row has the blocks of the loss: the query's positives, other queries, other positives, mined negatives.
    """
    scores = torch.cat([recorded.result.detach() for recorded in call.calls])
    columns = torch.cat([recorded.args[1] for recorded in call.calls])
    temperature = float(loss.temperature)
    valid = scores != -torch.inf
    match = torch.zeros_like(valid).scatter_(1, columns[:, None], True)
    rows = DirectionRows(scores * temperature, Mask(match, valid))
    objective = build("objectives", f"ntxent:tau={temperature!r}")
    numbers = {f"{call.sides.label('i2t')}/masked": 1 - valid.double().mean()}
    return Observed(rows, call.sides, ("i2t",), None, objective, call.value.detach(), numbers=numbers)
