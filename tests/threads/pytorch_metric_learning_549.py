"""How do I use ContrastiveLoss with cosines? With any rate and margins, similarities go the wrong way.

The poster trains pairs of texts with a contrastive loss on cosines; in another thread (#504) the same loss is very low
from the beginning. The default margins, 0 for positives and 1 for negatives, suit distances: a positive with a cosine
above 0 and a negative with a cosine below 1 cost nothing.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import normalize

from .base import Thread, classes, tower, write_csv

THREAD = Thread(
    reference="KevinMusgrave/pytorch-metric-learning#549",
    mistake="The margins are pos_margin = 0 and neg_margin = 1, and the similarity is a cosine.",
    mended="pos_margin = 1 and neg_margin = 0.",
    command="lossscope doctor --log train.csv",
    first="zero-loss",
)


def train(folder: Path, mended: bool) -> None:
    """Write train.csv: step and loss."""
    pictures, labels = classes(4000, 40)
    encoder = tower(32)
    optimizer = torch.optim.SGD(encoder.parameters(), lr=0.05, momentum=0.9)
    margins = (1.0, 0.0) if mended else (0.0, 1.0)
    rows = []
    for step in range(400):
        batch = torch.randint(len(pictures), (64,))
        loss = contrastive(normalize(encoder(pictures[batch]), dim=1), labels[batch], *margins)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        rows.append({"step": step, "loss": loss.item()})
    write_csv(folder / "train.csv", rows)


def contrastive(z: Tensor, labels: Tensor, pos_margin: float, neg_margin: float) -> Tensor:
    """Return mean of [pos_margin − s]₊ over positives + mean of [s − neg_margin]₊ over negatives, of those above 0."""
    S, same = z @ z.T, labels[:, None] == labels[None]
    itself = torch.eye(len(z), dtype=torch.bool)
    costs = (pos_margin - S[same & ~itself]).relu(), (S[~same] - neg_margin).relu()
    return torch.stack([cost.sum() / (cost > 0).sum().clamp(min=1) for cost in costs]).sum()
