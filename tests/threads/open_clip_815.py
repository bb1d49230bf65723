"""The logit scale falls from 14 to 1, and the loss is constant.

The poster trains a CLIP of a ViT and a BERT from scratch on custom pairs, with AdamW and a weight decay of 0.1. The
logit scale begins at 14.28 = 1 / 0.07, falls, and is 1 at the end; meanwhile the loss becomes constant. With a lower
learning rate the scale does not fall as far. Is that good?
"""

from __future__ import annotations

import math
from pathlib import Path

import torch
from torch import nn

from .base import Thread, clip_loss, parameters, views

THREAD = Thread(
    reference="mlfoundations/open_clip#815",
    mistake="The learning rate is so high that the towers cannot rank; only the scale can still lower the loss.",
    mended="The learning rate is a hundredth as high.",
    command="lossscope doctor --log out.log",
    first="scale-falling",
)
_SAMPLES = 6400  # of an epoch


def train(folder: Path, mended: bool) -> None:
    """Write out.log, as open_clip does."""
    images, texts = views(_SAMPLES, latent=24, noise=1.0)
    towers = [_deep(inputs) for inputs in (48, 40)]
    scale = nn.Parameter(torch.tensor(math.log(1 / 0.07)))
    rate = 2e-3 if mended else 2e-1
    optimizer = torch.optim.AdamW([*parameters(*towers), scale], lr=rate, betas=(0.9, 0.999), weight_decay=0.1)
    lines = []
    for epoch in range(8):
        for step, batch in enumerate(torch.randperm(_SAMPLES).split(64), 1):
            loss = clip_loss(towers[0](images[batch]), towers[1](texts[batch]), scale.exp())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                scale.clamp_(0, math.log(100))
            seen = f"[{64 * step:>5}/{_SAMPLES} ({64 * step / _SAMPLES:.0%})]"
            numbers = f"Loss: {loss:.5g} ({loss:.4g}) LR: {rate:.6f} Logit Scale: {scale.exp():.3f}"
            lines.append(f"2024-02-13,13:31:12 | INFO | Train Epoch: {epoch} {seen} {numbers}")
    (folder / "out.log").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _deep(inputs: int) -> nn.Sequential:
    hidden = [layer for _ in range(4) for layer in (nn.ReLU(), nn.Linear(64, 64))]
    return nn.Sequential(nn.Linear(inputs, 64), *hidden, nn.ReLU(), nn.Linear(64, 32))
