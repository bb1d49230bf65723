"""Five captions an image, shuffled one by one: a note."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .base import Case, Size, aligned, dump, healthy_dump, unit


def five(size: Size, folder: Path) -> Case:
    images, _ = aligned(Size(max(size.n // 5, 100), size.d, size.batch, size.seed), noise=0.1)
    captions = unit(np.repeat(images, 5, 0) + 0.5 / np.sqrt(size.d) * size.rng.normal(size=(5 * len(images), size.d)))
    path = dump(folder, images=images, captions=captions, caption_image=np.repeat(np.arange(len(images)), 5))
    return Case((path,), {"batch_size": 128})


SICK = (five,)
healthy = healthy_dump
