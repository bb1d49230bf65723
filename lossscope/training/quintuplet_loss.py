"""Weigh a batch with offline candidates: the similarities of each direction, and their gradient."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from lossscope.core.pair import Pair
from lossscope.core.similarity import Mask, both_masks
from lossscope.core.types import Reduction
from lossscope.core.weights import BatchLoss, reduction_scale
from lossscope.objectives.base import Objective


def weigh(objective: Objective, S: Tensor, mask: Mask | Pair[Mask], reduction: Reduction, pairs: int) -> BatchLoss:
    """Return the training loss of an extended batch and its gradient with respect to S.

    Each direction gets its B online candidates and three more columns: the query's offline negative, the similarity of
    the two offline items with each other, and that of their partners. The last two belong to no query; each direction
    gets them with half their weight.

    Args:
        objective: takes offline columns, marked 1, 2, 3 in `mask.info["offline"]`.
        S: (3 B, 3 B) as `HardCandidates.extend` orders it.
        mask: (B, B) i2t of the pairs, or the masks of both directions.
        reduction: of the losses of queries.
        pairs: divisor of reductions over pairs.
    """
    B, masks = len(S) // 3, both_masks(mask)
    near, mixed, far = slice(0, B), slice(B, 2 * B), slice(2 * B, None)
    shared = [S[mixed, mixed].diagonal(), S[far, far].diagonal()]
    own_i2t, own_t2i = S[near, mixed].diagonal(), S[mixed, near].diagonal()
    i2t = objective(torch.cat([S[near, near], torch.stack([own_i2t, *shared], 1)], 1), _wider(masks.i2t))
    t2i = objective(torch.cat([S[near, near].T, torch.stack([own_t2i, *shared], 1)], 1), _wider(masks.t2i))
    to_i2t, to_t2i = (objective.traits.directions * reduction_scale(w, reduction, pairs) for w in (i2t, t2i))
    A, T = i2t.W * to_i2t, t2i.W * to_t2i
    G = torch.zeros_like(S)
    G[near, near] = A[:, :B] + T[:, :B].T
    G[near, mixed].diagonal().copy_(A[:, B])
    G[mixed, near].diagonal().copy_(T[:, B])
    G[mixed, mixed].diagonal().copy_(A[:, B + 1] + T[:, B + 1])
    G[far, far].diagonal().copy_(A[:, B + 2] + T[:, B + 2])
    if i2t.values is None or t2i.values is None:
        return BatchLoss(None, G)
    return BatchLoss(i2t.values.sum() * to_i2t + t2i.values.sum() * to_t2i, G)


def _wider(mask: Mask) -> Mask:
    """Return the mask with the three offline columns, valid and marked 1, 2, 3."""
    more = torch.zeros(len(mask.match), 3, dtype=torch.bool, device=mask.match.device)
    marks = torch.tensor([1, 2, 3], device=mask.match.device).expand(len(mask.match), 3)
    offline = torch.cat([torch.zeros_like(mask.match, dtype=torch.long), marks], 1)
    match, valid = torch.cat([mask.match, more], 1), torch.cat([mask.valid, ~more], 1)
    return replace(mask, match=match, valid=valid, info={"offline": offline})
