"""Embed a split by a frozen encoder, each image and each caption once."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from lossscope.core.float32_products import float32_products
from lossscope.core.sides import plural
from lossscope.core.types import Progress
from lossscope.datasets.base import Split
from lossscope.encoders.base import Encoder
from lossscope.encoders.types import on_device
from lossscope.errors import InputError

from .captions import CaptionBatcher
from .train_mode import TrainMode, starts_of

Batches = Sequence[tuple[int, int]]  # start and end of each


@float32_products()
def embed(
    model: Encoder,
    captions: CaptionBatcher,
    batch_size: int = 256,
    progress: Progress | None = None,
    raw: bool = False,
    training: TrainMode | None = None,
) -> tuple[Tensor, Tensor]:
    """Return vectors of all images (N, d) and captions (M, d) of a split, float32 on the CPU.

    Args:
        model: stays in the mode it was in.
        captions: of the split.
        batch_size: items encoded at a time.
        progress: called after each batch.
        raw: return vectors that are not finite, too.
        training: embed in train mode; None: in eval mode.

    Raises:
        InputError: a vector is not finite; its ranks would look perfect, as nothing is above NaN.
    """
    device, split = next(model.parameters()).device, captions.split
    at_least = training is not None
    with _eval_mode(model) if training is None else training.of(model):
        image_vectors = _embed_images(
            model, split, starts_of(len(split.images), batch_size, at_least), device, progress
        )
        ends = starts_of(len(split.captions), batch_size, at_least)
        caption_vectors = _embed_captions(model, captions, ends, device, progress)
    sides = split.relations.sides
    for what, vectors in ((sides.first, image_vectors), (sides.second, caption_vectors)):
        bad = ~torch.isfinite(vectors).all(1)
        if bool(bad.any()) and not raw:
            raise InputError(
                f"{what} vectors of split {split.name!r} must be finite; row {int(bad.nonzero()[0])} is not. The "
                "training diverged: take an earlier checkpoint, or train with a lower --lr"
            )
    return image_vectors.clone(), caption_vectors.clone()


@contextlib.contextmanager
def _eval_mode(model: Encoder) -> Iterator[None]:
    training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        model.train(training)


def _embed_images(
    model: Encoder, split: Split, batches: Batches, device: torch.device, progress: Progress | None
) -> Tensor:
    parts, items = [], plural(split.relations.sides.first)
    for start, end in batches:
        rows = np.arange(start, end, dtype=np.int64)
        parts.append(model.encode_images(on_device(split.images.take(rows), device)).vectors.float().cpu())
        if progress:
            progress(f"encoding {split.name} {items}", int(rows[-1]) + 1, len(split.images))
    return torch.cat(parts)


def _embed_captions(
    model: Encoder,
    captions: CaptionBatcher,
    batches: Batches,
    device: torch.device,
    progress: Progress | None,
) -> Tensor:
    """Embed captions of similar length together, and return them in the order of the split."""
    order = np.argsort(captions.lengths(), kind="stable").astype(np.int64)
    second = str(captions.split.relations.sides.second)
    result: Tensor | None = None
    for start, end in batches:
        rows = order[start:end]
        vectors = model.encode_texts(*captions.take(rows, device)).vectors.float().cpu()
        result = vectors.new_empty(len(order), vectors.shape[1]) if result is None else result
        result[torch.from_numpy(rows)] = vectors
        if progress:
            progress(f"encoding {captions.split.name} {plural(second)}", start + len(rows), len(order))
    if result is None:
        raise InputError(f"split {captions.split.name!r} must have {plural(second)}; it has none")
    return result
