"""Is the objective that statistics are computed of the loss that is trained? The difference of their values."""

from __future__ import annotations

import torch
from torch import Tensor

from lossscope.engine.direction_rows import DirectionRows
from lossscope.engine.one_batch import plain_mode
from lossscope.objectives.base import Objective

from .observed import Observed

OBJECTIVE_LOSS = "objective_loss"  # its name where it is passed on between processes


def loss_gap(observed: Observed, objective: Objective) -> Tensor:
    """|L − L'| / max(1, |L|), L the value that the loss's own code gave, L' that of the objective; NaN without L'.

    L' is the mean over directions of the mean over all queries; a query without a negative has the loss 0 in both.
    """
    assert observed.rows is not None and observed.value is not None
    with plain_mode(observed.rows.S.device):
        ours = objective_loss(observed, objective)
        value = observed.value.detach().double().to(ours.device)
        return (ours - value).abs() / value.abs().clamp(min=1)


def gap_of(value: float, ours: float) -> float:
    """|L − L'| / max(1, |L|) of two numbers."""
    return abs(ours - value) / max(abs(value), 1.0)


def objective_loss(observed: Observed, objective: Objective) -> Tensor:
    """L', the mean over directions of the mean loss of all rows under an objective; NaN where it has no loss."""
    assert observed.rows is not None
    rows = [observed.rows]
    if len(observed.directions) == 2:
        rows.append(observed.rows.t() if observed.second is None else observed.second)
    with plain_mode(rows[0].S.device):
        return torch.stack([_mean(one.detach(), objective) for one in rows]).mean()


def _mean(rows: DirectionRows, objective: Objective) -> Tensor:
    """Mean loss of all rows, of zeros where an entry is not finite."""
    entries, finite = rows.finite_entries()
    values = objective(rows.zero_unless(finite, entries).S, rows.mask).values
    return torch.tensor(torch.nan, dtype=torch.float64) if values is None else values.double().sum() / len(rows.S)
