"""The loss does not fall below 0.7 with any learning rate.

The poster trains a ResNet with the hardest triplets of a batch and the soft margin, in batches of 18 persons with 4
pictures each. The loss goes to 0.69 with each learning rate, and stays. The answer is that all embeddings became the
same point, with a loss of ln(1 + e⁰), and that the code did not load the pre-trained weights.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn
from torch.nn.functional import softplus

from .base import Thread, batch_hard, parameters, tower

THREAD = Thread(
    reference="VisualComputingInstitute/triplet-reid#30",
    mistake="The learning rate is high for an untrained network: the hardest negatives pull all into one point.",
    mended="The learning rate is a hundredth as high.",
    command="lossscope doctor --log experiment --batch-size 72",
    first="no-learning",
)
_PERSONS, _PICTURES = 18, 4


def train(folder: Path, mended: bool) -> None:
    """Write TensorBoard events with the scalars of triplet-reid."""
    from torch.utils.tensorboard import SummaryWriter

    world = torch.Generator().manual_seed(1)
    persons = torch.randn(400, 24, generator=world)
    look = torch.randn(24, 64, generator=world) / 24**0.5
    layers = [layer for _ in range(2) for layer in (nn.Linear(128, 128), nn.ReLU())]
    network = nn.Sequential(tower(64, 128), nn.ReLU(), *layers, nn.Linear(128, 32))
    labels = torch.arange(_PERSONS).repeat_interleave(_PICTURES)
    optimizer = torch.optim.Adam(parameters(network), lr=3e-4 if mended else 3e-2)
    with SummaryWriter(str(folder / "experiment")) as writer:
        for step in range(1, 401):
            chosen = persons[torch.randperm(len(persons))[:_PERSONS]].repeat_interleave(_PICTURES, 0)
            pictures = torch.tanh((chosen + 0.45 * torch.randn_like(chosen)) @ look)
            furthest, nearest = batch_hard(network(pictures), labels)
            loss = softplus(furthest - nearest).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            writer.add_scalar("loss", loss.item(), step)
            writer.add_scalar("batch_top1", (furthest < nearest).float().mean().item(), step)
            writer.add_scalar("learning_rate", optimizer.param_groups[0]["lr"], step)
