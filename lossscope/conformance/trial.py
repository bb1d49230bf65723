"""What is tried of a trainer: on how many processes, with which embeddings, and where."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .step_gradient import Layout, StepCall
from .trial_embeddings import TrialEmbeddings, embeddings_with, trial_embeddings

SHARE, MINED = 4, 2  # pairs of one process; mined negatives of a query


@dataclass(frozen=True)
class Trial:
    """What is tried."""

    trainer: str  # its spec
    processes: int
    seed: int
    mean: bool = True  # whether the trainer averages gradients over processes
    always_mined: bool = False  # whether the step cannot be called without mined negatives
    plain: str | None = None  # spec of the same step without cache or chunks, if there is one
    device: str = "cpu"  # `cuda`: process r is on the GPU r, and processes talk by nccl
    layout: Layout = "stacked"  # of mined negatives
    cone: float = 0.0  # similarity that all embeddings have in addition

    @property
    def size(self) -> int:
        """Pairs of the whole batch; two processes' at least, as a batch of a few has hardly a negative."""
        return SHARE * max(self.processes, 2)

    def embeddings(self, mined: bool = False, hard: float = 0.0, late: bool = False) -> TrialEmbeddings:
        """Return the batch, with mined negatives or without; with them where the step needs them."""
        negatives = 1 if self.layout == "single" else MINED
        mined_negatives = negatives if mined or self.always_mined else 0
        return trial_embeddings(self.size, mined_negatives, self.seed, hard, late, self.cone)

    def embeddings_of(self, S: Tensor) -> TrialEmbeddings:
        """Return a batch whose similarities are S (B, B)."""
        return embeddings_with(S, self.seed)

    def call(self, rank: int, dtype: torch.dtype) -> StepCall:
        """Return how the step is called by one process."""
        return StepCall(dtype, seed=self.seed, device=self.place(rank), layout=self.layout)

    def place(self, rank: int) -> str:
        """Return the device of a process."""
        return f"cuda:{rank}" if self.device == "cuda" else "cpu"

    @property
    def backend(self) -> str:
        """How the processes talk."""
        return "nccl" if self.device == "cuda" else "gloo"
