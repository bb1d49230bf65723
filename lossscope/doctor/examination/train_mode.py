"""Recall of the same batches with the statistics of the batch, and with the running ones."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import nn

from lossscope.core.batches import Sampling
from lossscope.core.types import Rows
from lossscope.encoders.base import Encoder
from lossscope.encoders.types import on_device
from lossscope.sources.checkpoints.captions import CaptionBatcher

from ..parts.alignment import align
from ..parts.train_mode import TrainMode


def recall_in_modes(
    model: Encoder, captions: CaptionBatcher, layers: Sequence[nn.Module], size: int, batches: int
) -> TrainMode:
    """Encode a few batches in both modes; running statistics stay as they are.

    Args:
        model: in eval mode.
        captions: of a split.
        layers: of batch norm.
        size: pairs of a batch.
        batches: number of them.
    """
    relations = captions.split.relations
    recalls: dict[bool, list[float]] = {True: [], False: []}
    for batch in islice(Sampling("pairs", max(size, 2), 0, min_batch_size=2).batches(relations), batches):
        for training in (True, False):
            with _training(layers if training else ()):
                recalls[training].append(_recall(model, captions, batch.images, batch.captions[: batch.pairs]))
    return TrainMode(size, len(layers), float(np.mean(recalls[True])), float(np.mean(recalls[False])))


@contextlib.contextmanager
def _training(layers: Sequence[nn.Module]) -> Iterator[None]:
    """Let batch norm use the statistics of the batch, and leave its running ones alone."""
    momenta: list[Any] = [layer.momentum for layer in layers]
    kept = [{name: x.clone() for name, x in layer.named_buffers()} for layer in layers]
    try:
        for layer in layers:
            layer.train()
        yield
    finally:
        for layer, momentum, buffers in zip(layers, momenta, kept, strict=True):
            layer.eval()
            layer.momentum = momentum
            for name, x in buffers.items():
                layer.get_buffer(name).copy_(x)


@torch.no_grad()
def _recall(model: Encoder, captions: CaptionBatcher, first: Rows, second: Rows) -> float:
    device = next(model.parameters()).device
    images = model.encode_images(on_device(captions.split.images.take(first), device)).vectors
    texts = model.encode_texts(*captions.take(second, device)).vectors
    S = (torch.nn.functional.normalize(images, dim=-1) @ torch.nn.functional.normalize(texts, dim=-1).T).float().cpu()
    valid = torch.from_numpy(~captions.split.relations.is_positive(first, second) | np.eye(len(first), dtype=bool))
    return float(np.mean([align(S, valid, "").recall, align(S.T, valid.T, "").recall]))
