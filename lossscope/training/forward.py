"""Compute S of a batch, and from S the training loss and its gradient."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lossscope.core.batches import Batch
from lossscope.core.distributed import ProcessGroup
from lossscope.core.pair import Pair
from lossscope.core.similarity import Mask, both_masks
from lossscope.core.types import Reduction
from lossscope.core.weights import BatchLoss, both, reduce_weights
from lossscope.encoders.base import Encoder
from lossscope.errors import InputError
from lossscope.objectives.base import Objective
from lossscope.sources.checkpoints.captions import CaptionBatcher

from . import quintuplet_loss
from .data_parallel import StepSeed, encode_shared, shared_rng
from .recipe import Precision


class BatchInputs(NamedTuple):
    """A batch, the captions of its split, and its i2t mask on the device."""

    captions: CaptionBatcher
    batch: Batch
    mask: Mask


class Similarities(NamedTuple):
    """The output of the encoder for a batch."""

    S: Tensor  # (images, captions), with its graph
    mask: Mask  # with the embeddings in `info`, if asked for
    extra_loss: Tensor | None  # () a loss of the model itself, if it has any


@dataclass(frozen=True)
class Forward:
    """How an encoder runs on the batches of a job."""

    model: Encoder
    encoder: str  # its spec, for messages
    device: torch.device
    precision: Precision  # of the towers; similarities are always float32
    processes: ProcessGroup  # of the job

    def run(self, inputs: BatchInputs, seed: StepSeed, embeddings: bool = False) -> Similarities:
        """Compute S of a batch.

        Args:
            inputs: the batch.
            seed: of random numbers that all processes share.
            embeddings: whether to put the embeddings of both sides into the mask's `info`.

        Raises:
            InputError: the model scores the two directions differently.
        """
        captions, batch, mask = inputs
        ids, lengths = captions.take(batch.captions, self.device)
        with _autocast(self.precision, self.device):
            images = captions.split.images
            sides = encode_shared(self.model, images, batch, (ids, lengths), self.processes)
        if embeddings:
            vectors = {name: side.vectors.detach() for name, side in zip(("queries", "candidates"), sides, strict=True)}
            mask = replace(mask, info={**mask.info, **vectors})
        with torch.autocast(self.device.type, enabled=False), shared_rng(self.processes, self.device, seed):
            S = self.model.score(*sides)
            if not isinstance(S, Tensor):
                raise InputError(f"S must be one matrix to train; the two directions of {self.encoder} differ")
            S = S.float()
            return Similarities(S, mask, self.model.extra_loss(*sides, S, mask, ids, lengths))


def batch_loss(
    objective: Objective, S: Tensor, mask: Mask | Pair[Mask], reduction: Reduction | None, pairs: int
) -> BatchLoss:
    """Return the training loss of a batch and its gradient with respect to S, (images, captions).

    Args:
        objective: called in both directions.
        S: without a graph; of an extended batch if the objective takes offline candidates.
        mask: i2t, or the masks of both directions.
        reduction: None: that of the objective.
        pairs: divisor of reductions over pairs.
    """
    reduction = reduction or objective.traits.reduction
    if "offline" in objective.traits.required_info:
        return quintuplet_loss.weigh(objective, S, mask, reduction, pairs)
    return reduce_weights(both(objective, S, mask), objective.traits.directions, reduction, pairs)


def similarity_summary(S: Tensor, mask: Mask | Pair[Mask]) -> dict[str, float]:
    """Return mean and 10, 50, 90 % quantiles of positive and hardest-negative similarities, over both directions."""
    masks = both_masks(mask)
    hardest = torch.cat(
        [
            rows.masked_fill(of_rows.non_negatives, -torch.inf).amax(1)
            for rows, of_rows in zip((S, S.T), masks, strict=True)
        ]
    )
    summary: dict[str, float] = {}
    for name, values in (("pos", S[masks.i2t.positives]), ("neg", hardest[hardest.isfinite()])):
        values = values if len(values) else S.new_full((1,), float("nan"))
        summary[f"{name}_mean"] = float(values.mean())
        for q in (10, 50, 90):
            summary[f"{name}_q{q}"] = float(_quantile(values, q / 100))
    return summary


def _quantile(values: Tensor, q: float) -> Tensor:
    """Return the nearest-rank quantile; torch.quantile refuses large inputs."""
    return values.sort().values[round(q * (len(values) - 1))]


def _autocast(precision: Precision, device: torch.device) -> contextlib.AbstractContextManager[Any]:
    types = {"bf16": torch.bfloat16, "fp16": torch.float16}
    return torch.autocast(device.type, types[precision]) if precision in types else contextlib.nullcontext()
