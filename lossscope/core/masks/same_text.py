"""Leave out copies of the positive: negatives whose words, or pixels, are those of a positive of the query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from .base import MaskInputs, Needs


@dataclass(frozen=True)
class SameText:
    """hidden = input(candidate) equals input(positive), decided by the inputs, not by embeddings.

    Dropout gives copies different embeddings, so that comparing those misses them.
    Source: Zhang et al. 2025 (Qwen3 Embedding), training objective: d_j = d_i+; pull request 3260 of
    sentence-transformers.
    """

    needs: ClassVar[Needs] = "keys"

    def hidden(self, rows: MaskInputs) -> Tensor:
        assert rows.candidate_keys is not None
        keys = rows.candidate_keys.to(rows.S.device)
        hidden = torch.zeros_like(rows.mask.match)
        remaining = rows.mask.positives.clone()
        while bool(remaining.any()):
            column = remaining.to(torch.uint8).argmax(1, keepdim=True)
            present = remaining.gather(1, column)
            hidden |= (keys == keys.gather(1, column)) & present
            remaining.scatter_(1, column, False)
        return hidden
