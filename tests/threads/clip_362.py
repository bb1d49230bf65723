"""The loss comes down to log 64 and stays there.

The poster continues to train CLIP in batches of 64. In the first 200 iterations the loss comes down to about 4.13,
and then never moves again; others report the same number.
"""

from __future__ import annotations

import math
from pathlib import Path

import torch
from torch import nn

from .base import Thread, clip_loss, parameters, tower, views, write_csv

THREAD = Thread(
    reference="openai/CLIP#362",
    mistake="Pictures and captions come from two loaders, and each loader shuffles on its own.",
    mended="One loader returns both.",
    command="lossscope doctor --log train.csv --batch-size 64",
    first="no-learning",
)


def train(folder: Path, mended: bool) -> None:
    """Write train.csv: step and loss."""
    images, texts = views(2000)
    image_tower, text_tower = tower(48), tower(40)
    scale = nn.Parameter(torch.tensor(math.log(1 / 0.07)))
    optimizer = torch.optim.Adam([*parameters(image_tower, text_tower), scale], lr=5e-4, betas=(0.9, 0.98), eps=1e-6)
    rows = []
    for step in range(1, 601):
        pictures = captions = torch.randperm(len(images))[:64]
        if not mended:
            captions = torch.randperm(len(texts))[:64]
        loss = clip_loss(image_tower(images[pictures]), text_tower(texts[captions]), scale.exp())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        rows.append({"step": step, "loss": loss.item()})
    write_csv(folder / "train.csv", rows)
