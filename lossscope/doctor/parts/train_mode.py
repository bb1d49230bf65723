"""Compare recall of the same batches with batch norm in training mode and in evaluation mode."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from lossscope.core.batches import Sampling
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.facts import Missing
from lossscope.core.pair import Pair
from lossscope.core.types import Rows
from lossscope.encoders.base import Encoder
from lossscope.encoders.types import on_device
from lossscope.sources.checkpoints.captions import CaptionBatcher, with_tokens

from .alignment import mean_recall
from .patient import Patient
from .trained_model import TrainedModel

_BATCH_NORM = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
_BATCHES = 4


@dataclass(frozen=True)
class TrainMode:
    """Mean recall@1 of both directions in batches of the training's size."""

    batch_size: int
    layers: int  # of batch norm
    training: float  # with the statistics of the batch
    evaluation: float  # with the running statistics
    needs: ClassVar[tuple[type, ...]] = (SplitEmbeddings,)

    @classmethod
    def of(cls, patient: Patient, _: SplitEmbeddings) -> TrainMode:
        """Run the model in both modes. Raises Missing without a model, or without batch norm."""
        if not patient.has(TrainedModel):
            raise Missing("it has no model to run in both modes", "a checkpoint or run of lossscope")
        trained = patient.part(TrainedModel)
        model = trained.checkpoint.model(patient.options.source.trust_code)
        layers = [layer for layer in model.modules() if isinstance(layer, _BATCH_NORM)]
        if not layers:
            raise Missing("the model has no batch norm")
        if not model.is_dot_product:
            raise Missing("the model scores pairs and has no embeddings")
        captions = CaptionBatcher(with_tokens(trained.data, trained.checkpoint.words()), trained.checkpoint.words())
        size = min(patient.batch_size, len(trained.data.relations.positives))
        return recall_in_modes(model, captions, layers, size, _BATCHES)


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
    """Let batch norm use the statistics of the batch, and restore its running statistics at the end."""
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
    S = (torch.nn.functional.normalize(images, dim=-1) @ torch.nn.functional.normalize(texts, dim=-1).T).cpu()
    return mean_recall(Pair(S, S.T), first, second, captions.split.relations)
