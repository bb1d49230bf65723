"""Twelve images and two captions of each as random vectors, for dumps of every format."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.similarity import normalise

IMAGES, EACH, WIDTH = 12, 2, 6


def dump_arrays() -> dict[str, Any]:
    """Return vectors, and the image of each caption."""
    random = np.random.default_rng(0)
    return {
        "images": random.normal(size=(IMAGES, WIDTH)).astype("f4"),
        "captions": random.normal(size=(IMAGES * EACH, WIDTH)).astype("f4"),
        "caption_image": np.repeat(np.arange(IMAGES), EACH),
    }


def embedded() -> SplitEmbeddings:
    """Return the same arrays as an opened source."""
    arrays = dump_arrays()
    return SplitEmbeddings(
        name="model",
        images=normalise(torch.from_numpy(arrays["images"])),
        captions=normalise(torch.from_numpy(arrays["captions"])),
        similarity=None,
        caption_image=arrays["caption_image"],
        image_ids=[f"i{n}" for n in range(IMAGES)],
        caption_ids=[f"c{n}" for n in range(IMAGES * EACH)],
        fingerprint="abc",
    )
