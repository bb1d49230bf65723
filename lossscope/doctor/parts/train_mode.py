"""Recall of the same batches with batch norm in training mode, and in evaluation mode."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TrainMode:
    """Mean recall@1 of both directions in batches of the training's size."""

    batch_size: int
    layers: int  # of batch norm
    training: float  # with the statistics of the batch
    evaluation: float  # with the running statistics
