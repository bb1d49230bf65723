"""Recall on the training data beside recall on held-out data, among equally many candidates."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Generalisation:
    """Mean recall@1 of both directions, among as many candidates in both splits."""

    pairs: int  # that were compared in each split
    train: float
    held_out: float
    earlier_gap: float | None = None  # train − held-out of an earlier epoch, where there is a checkpoint
    earlier_held_out: float | None = None

    @property
    def gap(self) -> float:
        """Recall on the training data − recall on held-out data."""
        return self.train - self.held_out
