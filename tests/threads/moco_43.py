"""The accuracy is 100 % in the first batches and then falls, while the loss rises.

The poster trains MoCo on custom pictures. The answers say that ImageNet shows the same: the queue begins as noise, the
model tells noise from a picture at once, and the task becomes harder while keys of pictures replace the noise.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch.nn.functional import cross_entropy, normalize

from .base import Thread, tower

THREAD = Thread(
    reference="facebookresearch/moco#43",
    mistake="None: the queue of 4,096 keys begins as noise.",
    mended="The loop fills the queue with keys of pictures before the first step, so that the loss only falls.",
    command="lossscope doctor --log train.log",
    first="",
)
_KEYS, _BATCH, _STEPS = 4096, 32, 1200


def train(folder: Path, mended: bool) -> None:
    """Write train.log, as MoCo does."""
    pictures = torch.randn(20_000, 48)
    encoder, momentum_encoder = tower(48, 16, 64), tower(48, 16, 64)
    momentum_encoder.load_state_dict(encoder.state_dict())
    optimizer = torch.optim.SGD(encoder.parameters(), lr=0.01, momentum=0.9)
    queue = normalize(torch.randn(_KEYS, 16), dim=1)
    if mended:
        with torch.no_grad():
            queue = normalize(momentum_encoder(pictures[:_KEYS]), dim=1)
    lines = []
    for step in range(_STEPS):
        batch = pictures[torch.randint(len(pictures), (_BATCH,))]
        queries, keys = (batch + 0.9 * torch.randn_like(batch) for _ in range(2))
        q = normalize(encoder(queries), dim=1)
        with torch.no_grad():
            k = normalize(momentum_encoder(keys), dim=1)
        logits = torch.cat([(q * k).sum(1, keepdim=True), q @ queue.T], 1) / 0.07
        loss = cross_entropy(logits, torch.zeros(_BATCH, dtype=torch.long))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(momentum_encoder.parameters(), encoder.parameters(), strict=True):
                slow.lerp_(fast, 0.002)
            queue[torch.arange(step * _BATCH, (step + 1) * _BATCH) % _KEYS] = k
        if step % 10 == 0:
            top1 = (logits.argmax(1) == 0).float().mean() * 100
            meters = f"Loss {loss:.4e} ({loss:.4e})\tAcc@1 {top1:6.2f} ({top1:6.2f})"
            lines.append(f"Epoch: [0][{step:4d}/{_STEPS}]\tTime  0.426 ( 0.427)\tData  0.000 ( 0.001)\t{meters}")
    (folder / "train.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
