"""One call of a loss of pytorch-metric-learning: its embeddings, and which pairs of them count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from lossscope.core.similarity import Mask
from lossscope.errors import InputError

PARAMETERS = ("embeddings", "labels", "indices_tuple", "ref_emb", "ref_labels")


@dataclass(frozen=True)
class MetricCall:
    """What a loss was called with."""

    embeddings: Tensor
    labels: Tensor | None = None
    indices_tuple: Sequence[Tensor] | None = None
    ref_emb: Tensor | None = None
    ref_labels: Tensor | None = None

    @property
    def is_one_set(self) -> bool:
        """Whether items are compared among themselves."""
        return self.ref_emb is None or self.ref_emb is self.embeddings

    @property
    def references(self) -> Tensor:
        """(m, d) embeddings that items are compared with."""
        return self.embeddings if self.ref_emb is None else self.ref_emb

    def mask(self, device: torch.device) -> Mask:
        """Return the mask: items of one label match, all but the item itself count; or the pairs of the miner."""
        n, m = len(self.embeddings), len(self.references)
        if self.indices_tuple is not None:
            return _mask_of_pairs(self.indices_tuple, n, m, device)
        if self.labels is None:
            raise InputError("a loss that is watched must be called with labels or an indices_tuple; got neither")
        others = self.labels if self.ref_labels is None else self.ref_labels
        match = self.labels.to(device)[:, None] == others.to(device)[None, :]
        valid = ~torch.eye(n, m, dtype=torch.bool, device=device) if self.is_one_set else torch.ones_like(match)
        return Mask(match & valid, valid)


def _mask_of_pairs(indices: Sequence[Tensor], n: int, m: int, device: torch.device) -> Mask:
    """Return the mask of (anchor, positive, anchor, negative) pairs, or of (anchor, positive, negative) triplets."""
    a1, p, *rest = [index.to(device) for index in indices]
    a2, negative = (a1, rest[0]) if len(rest) == 1 else rest
    match, valid = (torch.zeros(n, m, dtype=torch.bool, device=device) for _ in range(2))
    match[a1, p] = True
    valid[a2, negative] = True
    return Mask(match, valid | match)
