"""The loss of SimCLR does not fall for many epochs.

The poster trains a notebook's SimCLR on CIFAR-10, and even on one batch of it: the loss stays too high. The loss
normalises both views with `l2_normalize(z)`, and the default axis is None.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from .base import Thread, parameters, tower, views

THREAD = Thread(
    reference="tensorflow/similarity#233",
    mistake="The loss normalises the views over the whole batch, not over each row.",
    mended="It normalises them over the last axis.",
    command="lossscope doctor views.npz --objective ntxent:tau=0.1 --batch-size 512 --sides view1/view2",
    first="normalised-over-wrong-axis",
)


def train(folder: Path, mended: bool) -> None:
    """Write views.npz: both views of the batch as the loss sees them."""
    images, _ = views(512, noise=0.0)
    encoder = tower(48)
    optimizer = torch.optim.Adam(parameters(encoder), lr=1e-3)

    def l2_normalize(z: Tensor) -> Tensor:
        return z / (z.norm(dim=-1, keepdim=True) if mended else z.norm())

    def project() -> Tensor:
        return l2_normalize(encoder(images + 0.15 * torch.randn_like(images)))

    for _ in range(300):
        logits, labels = project() @ project().T / 0.1, torch.arange(512)
        loss = (cross_entropy(logits, labels) + cross_entropy(logits.T, labels)) / 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        np.savez(folder / "views.npz", view1s=project().numpy(), view2s=project().numpy())
