"""Compute a plain loss of two batches of embeddings, for GradCache to compute in chunks."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from lossscope.core.distributed import process_group


def symmetric(queries: Tensor, candidates: Tensor) -> Tensor:
    """Return both directions of the softmax over the candidates of all processes, in each process."""
    q, c = (process_group().gather_rows(normalize(x)) for x in (queries, candidates))
    S, labels = q @ c.T / 0.05, torch.arange(len(q))
    return (cross_entropy(S, labels) + cross_entropy(S.T, labels)) / 2
