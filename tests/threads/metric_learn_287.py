"""In some batches the loss is 997187911680.

The poster trains a margin loss until hardly a triplet is active. In a batch without one, the number of active pairs is
0, the loss is a small regulariser divided by 1e-16, and the mean of the batches is useless.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import normalize

from .base import Thread, classes, tower, write_csv

THREAD = Thread(
    reference="scikit-learn-contrib/metric-learn#287",
    mistake="The loss divides its sum by the number of active pairs + 1e-16.",
    mended="It divides by max(number, 1).",
    command="lossscope doctor --log train.csv",
    first="loss-spike",
)
_MARGIN, _BETA, _NU = 0.2, 1.0, 1e-4


def train(folder: Path, mended: bool) -> None:
    """Write train.csv: step and loss."""
    pictures, labels = classes(4000, 12, spread=0.7)
    encoder = tower(32)
    optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-4)
    rows = []
    for step in range(600):
        batch = torch.randint(len(pictures), (16,))
        loss = margin_loss(normalize(encoder(pictures[batch]), dim=1), labels[batch], mended)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        rows.append({"step": step, "loss": loss.item()})
    write_csv(folder / "train.csv", rows)


def margin_loss(z: Tensor, labels: Tensor, mended: bool) -> Tensor:
    """Return (Σ [α + d − β]₊ over positives + Σ [α + β − d]₊ over negatives + ν β) / number of terms above 0."""
    distances = (z[:, None] - z[None]).square().sum(2).add(1e-12).sqrt()
    same = labels[:, None] == labels[None]
    terms = torch.where(same, _MARGIN + distances - _BETA, _MARGIN + _BETA - distances).relu()
    terms = terms.masked_fill(torch.eye(len(z), dtype=torch.bool), 0)
    active = (terms > 0).sum()
    return (terms.sum() + _NU * _BETA) / (active.clamp(min=1) if mended else active + 1e-16)
