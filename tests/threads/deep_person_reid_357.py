"""With the triplet loss mAP is 0.2 %.

The poster trains torchreid on MSMT17 with a learning rate of 0.002. In its console log the triplet loss comes down from
6 to 0.31, and the cross-entropy, which has no weight, stays at 6.66. The answers advise a tenth of the rate, and a
weight for the cross-entropy.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from .base import Thread, batch_hard, parameters, tower

THREAD = Thread(
    reference="KaiyangZhou/deep-person-reid#357",
    mistake="The learning rate is too high for the hardest triplets alone: all pictures get the same embedding.",
    mended="The learning rate is a tenth as high, and the cross-entropy has a weight.",
    command="lossscope doctor --log train.log --column loss=loss_t --objective triplet-sh:margin=0.3",
    first="margin-plateau",
)
_PERSONS, _PICTURES, _IN_BATCH = 100, 4, 16


def train(folder: Path, mended: bool) -> None:
    """Write train.log, as torchreid prints it."""
    looks = torch.randn(_PERSONS, 32)
    rate = 3e-3 if mended else 3e-2
    network = nn.Sequential(tower(32, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 32))
    classifier = nn.Linear(32, _PERSONS)
    optimizer = torch.optim.Adam(parameters(network, classifier), lr=rate, amsgrad=True)
    lines = []
    for step in range(1, 401):
        persons = torch.randperm(_PERSONS)[:_IN_BATCH].repeat_interleave(_PICTURES)
        z = 15 * network(looks[persons] + 0.8 * torch.randn(len(persons), 32))
        furthest, nearest = batch_hard(z, persons)
        triplet, entropy = (0.3 + furthest - nearest).relu().mean(), cross_entropy(classifier(z), persons)
        optimizer.zero_grad()
        (triplet + entropy if mended else triplet).backward()
        optimizer.step()
        if step % 5 == 0:
            top1 = (classifier(z).argmax(1) == persons).float().mean() * 100
            losses = f"loss_t {triplet:.4f} ({triplet:.4f})\tloss_x {entropy:.4f} ({entropy:.4f})"
            times = "time 0.148 (0.313)\tdata 0.000 (0.046)\teta 1:54:45"
            lines.append(f"epoch: [1/1][{step}/400]\t{times}\t{losses}\tacc {top1:.4f} ({top1:.4f})\tlr {rate:.6f}")
    (folder / "train.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
