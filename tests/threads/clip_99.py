"""After fine-tuning, every query gets the same image.

The poster fine-tunes CLIP on 272 images for five epochs. Before, its results were sensible; afterwards the model
returns the same image for each query. Others report it, too.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from .base import Thread, clip_loss, parameters, views

THREAD = Thread(
    reference="openai/CLIP#99",
    mistake="The learning rate is much too high for a trained model, and has no warm-up.",
    mended="The learning rate is a three-hundredth as high.",
    command="lossscope doctor dump.npz --objective infonce --batch-size 32",
    first="complete-collapse",
)


def train(folder: Path, mended: bool) -> None:
    """Write dump.npz: the 272 images and their captions after fine-tuning."""
    towers, scale = [_deep(inputs) for inputs in (48, 40)], nn.Parameter(torch.tensor(math.log(1 / 0.07)))
    _fit(towers, scale, *views(4000, seed=5), rate=1e-3, decay=0, size=128, epochs=10)
    images, texts = (x + shift for x, shift in zip(views(272, seed=9), (0.3, -0.2), strict=True))  # of another kind
    _fit(towers, scale, images, texts, rate=1e-4 if mended else 3e-2, decay=0.2, size=32, epochs=5)
    with torch.no_grad():
        first, second = (
            normalize(network(x), dim=1).numpy() for network, x in zip(towers, (images, texts), strict=True)
        )
    np.savez(folder / "dump.npz", images=first, captions=second, caption_image=np.arange(len(second)))


def _deep(inputs: int) -> nn.Sequential:
    hidden = [layer for _ in range(2) for layer in (nn.ReLU(), nn.Linear(128, 128))]
    return nn.Sequential(nn.Linear(inputs, 128), *hidden, nn.ReLU(), nn.Linear(128, 64))


def _fit(
    towers: list[nn.Sequential],
    scale: nn.Parameter,
    images: Tensor,
    texts: Tensor,
    *,
    rate: float,
    decay: float,
    size: int,
    epochs: int,
) -> None:
    optimizer = torch.optim.Adam(
        [*parameters(*towers), scale], lr=rate, betas=(0.9, 0.98), eps=1e-6, weight_decay=decay
    )
    for _ in range(epochs):
        for batch in torch.randperm(len(images)).split(size):
            loss = clip_loss(towers[0](images[batch]), towers[1](texts[batch]), scale.exp())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
