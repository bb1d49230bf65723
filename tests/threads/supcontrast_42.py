"""The supervised contrastive loss stands at 6.920 from the beginning.

The poster trains SupCon on 17,000 pictures of six classes, in batches of 64 with two views each. The loss is 6.920 at
the start and after 30 epochs. Others report the same, and `--warm` helps.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from .base import Thread, classes

THREAD = Thread(
    reference="HobbitLong/SupContrast#42",
    mistake="The learning rate is full from the first step: all pictures get the same embedding, and keep it.",
    mended="The learning rate warms up, to a twentieth of its old value.",
    command="lossscope doctor --log train.log --batch-size 64 --objective supcon:tau=0.1",
    first="no-learning",
)
_BATCH, _TEMPERATURE, _BASE = 64, 0.1, 0.07  # the loss is multiplied by the ratio of the two


def train(folder: Path, mended: bool) -> None:
    """Write train.log, as SupContrast does."""
    pictures, labels = classes(17_000, 6)
    hidden = [layer for _ in range(7) for layer in (nn.Linear(64, 64), nn.ReLU())]
    network = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), *hidden, nn.Linear(64, 32))
    optimizer = torch.optim.SGD(network.parameters(), lr=1.0, momentum=0.9)
    lines = []
    for step in range(1, 601):
        if mended:
            optimizer.param_groups[0]["lr"] = 0.05 * min(step / 200, 1)
        batch = torch.randint(len(pictures), (_BATCH,))
        views = pictures[batch].repeat(2, 1) + 0.3 * torch.randn(2 * _BATCH, 32)
        loss = supcon(network(views), labels[batch].repeat(2))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            lines.append(f"Train: [1][{step}/600]\tBT 0.429 (0.430)\tDT 0.000 (0.001)\tloss {loss:.3f} ({loss:.3f})")
    (folder / "train.log").write_text("\n".join(lines) + "\n", encoding="utf-8")


def supcon(embeddings: Tensor, labels: Tensor) -> Tensor:
    """Return −(τ / 0.07) · mean over anchors of the mean log-probability of their positives."""
    z = normalize(embeddings, dim=1)
    itself = torch.eye(len(z), dtype=torch.bool)
    log_p = (z @ z.T / _TEMPERATURE).masked_fill(itself, -torch.inf).log_softmax(1)
    positive = (labels[:, None] == labels[None]) & ~itself
    return -_TEMPERATURE / _BASE * (log_p.masked_fill(~positive, 0).sum(1) / positive.sum(1)).mean()
