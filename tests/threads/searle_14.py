"""Pairs have a cosine of less than 0.4, although the ranking is right.

The cosine of an image and its text is usually below 40 %, also with the authors' model. The nearest candidates look
right, and the poster checked the code. Is a cosine below 0.4 normal?
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import normalize

from .base import Thread, clip_loss, parameters, tower, views

THREAD = Thread(
    reference="miccunifi/SEARLE#14",
    mistake="None: images and texts lie in two cones, so that a low cosine may be the highest of all.",
    mended="Nothing needs a repair. Towers that begin nearer to each other end with higher cosines.",
    command="lossscope doctor embeddings.npz",
    first="modality-gap",
)


def train(folder: Path, mended: bool) -> None:
    """Write embeddings.npz: images and captions."""
    images, texts = views(2000)
    towers = tower(48, 64), tower(40, 64)
    with torch.no_grad():  # towers of ReLU networks begin in a cone each
        for network, side in zip(towers, (1, -1), strict=True):
            network[-1].bias += 0.0 if mended else side * 0.11
    optimizer = torch.optim.Adam(parameters(*towers), lr=1e-3)
    for _ in range(400):
        batch = torch.randperm(len(images))[:128]
        loss = clip_loss(towers[0](images[batch]), towers[1](texts[batch]), 100.0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        first, second = (
            normalize(network(x), dim=1).numpy() for network, x in zip(towers, (images, texts), strict=True)
        )
    np.savez(folder / "embeddings.npz", images=first, captions=second, caption_image=np.arange(len(second)))
