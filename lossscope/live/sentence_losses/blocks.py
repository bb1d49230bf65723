"""Blocks of similarities that a ranking loss computes: as rows of queries, side by side with their mask."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from lossscope.core.similarity import REPEATS, Mask

from ..given_weights import WEIGHTS


def block_of(term: str, parts: list[Tensor]) -> Tensor:
    """Return the rows of all chunks of a batch: (b, n); terms of documents are computed with them as columns."""
    return torch.cat([part.T for part in parts] if term.startswith("doc") else parts)


def joint_mask(blocks: dict[str, Tensor], offset: int) -> Mask:
    """Return the mask of blocks side by side; what the loss left out is −inf."""
    valid = {term: block != -torch.inf for term, block in blocks.items()}
    first = blocks["query_to_doc"]
    info = {}
    if "doc_to_query" in blocks:
        valid["doc_to_query"].diagonal(offset).fill_(False)
        info = {REPEATS: torch.ones(len(first), device=first.device)}
    match = torch.zeros_like(valid["query_to_doc"])
    match.diagonal(offset).fill_(True)
    rest = [torch.zeros_like(block) for block in list(valid.values())[1:]]
    return Mask(torch.cat([match, *rest], 1), torch.cat(list(valid.values()), 1), info)


def with_weights(mask: Mask, W: Tensor | None) -> Mask:
    """Return the mask with W of a softmax, whose rows sum to 0: the positive's is minus the sum of the others."""
    if W is None:
        return mask
    negatives = W.masked_fill(~mask.negatives, 0.0)
    W = negatives.where(~mask.positives, -negatives.sum(1, keepdim=True))
    return replace(mask, info={**mask.info, WEIGHTS: W})
