"""Should SigLIP's bias begin at log(p / (1 − p)) instead of −10?

The bias of the sigmoid loss begins at −10, the prior of batches of 22,027 pairs. The poster trains with 128 or 256 and
begins at the prior of these, p = 1 / B, which gives random embeddings their lowest possible loss.
"""

from __future__ import annotations

import math
from pathlib import Path

import torch
from torch import nn
from torch.nn.functional import logsigmoid, normalize

from .base import Thread, parameters, tower, views, write_csv

THREAD = Thread(
    reference="mlfoundations/open_clip#650",
    mistake="The bias begins at −10 in batches of 128.",
    mended="It begins at −log 127.",
    command="lossscope doctor --log train.csv --batch-size 128",
    first="siglip-start",
)
_BATCH = 128


def train(folder: Path, mended: bool) -> None:
    """Write train.csv: step, loss, logit scale and bias."""
    images, texts = views(4000)
    towers = tower(48), tower(40)
    scale = nn.Parameter(torch.tensor(math.log(10)))
    bias = nn.Parameter(torch.tensor(-math.log(_BATCH - 1) if mended else -10.0))
    optimizer = torch.optim.Adam([*parameters(*towers), scale, bias], lr=1e-3)
    signs = 2 * torch.eye(_BATCH) - 1
    rows = []
    for step in range(1, 401):
        batch = torch.randperm(len(images))[:_BATCH]
        cosines = normalize(towers[0](images[batch]), dim=1) @ normalize(towers[1](texts[batch]), dim=1).T
        loss = -logsigmoid(signs * (scale.exp() * cosines + bias)).sum() / _BATCH
        row = {"step": step, "loss": loss.item(), "logit_scale": scale.exp().item(), "logit_bias": bias.item()}
        rows.append(row)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    write_csv(folder / "train.csv", rows)
