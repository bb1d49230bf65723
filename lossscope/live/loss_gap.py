"""Is the objective that statistics are computed of the loss that is trained? The difference of their values."""

from __future__ import annotations

import torch
from torch import Tensor

from lossscope.engine.direction_rows import DirectionRows
from lossscope.objectives.base import Objective

from .observed import Observed


def loss_gap(observed: Observed, objective: Objective) -> Tensor:
    """|L − L'| / max(1, |L|), L the value that the loss's own code gave, L' that of the objective; NaN without L'.

    L' is the mean over directions of the mean over all queries; a query without a negative has the loss 0 in both.
    """
    assert observed.rows is not None and observed.value is not None
    rows = [observed.rows]
    if len(observed.directions) == 2:
        rows.append(observed.rows.t() if observed.second is None else observed.second)
    with torch.inference_mode(False), torch.no_grad(), torch.autocast(rows[0].S.device.type, enabled=False):
        means = [_mean(one.detach(), objective) for one in rows]
        value = observed.value.detach().double().to(means[0].device)
        return (torch.stack(means).mean() - value).abs() / value.abs().clamp(min=1)


def _mean(rows: DirectionRows, objective: Objective) -> Tensor:
    """Mean loss of all rows, of zeros where an entry is not finite."""
    entries, finite = rows.finite_entries()
    values = objective(rows.zero_unless(finite, entries).S, rows.mask).values
    return torch.tensor(torch.nan, dtype=torch.float64) if values is None else values.double().sum() / len(rows.S)
