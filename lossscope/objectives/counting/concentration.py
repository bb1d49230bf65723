"""How concentrated the counted weight of a query is: on few of its entries, or spread over many?"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lossscope.core.counts import CountedWeights
from lossscope.core.row_ops import row_dot, row_top_k

TOP = 5  # entries that `top5` adds up
_SMALLEST_LOG = -200.0  # in place of log 0, which times 0 would be NaN


@dataclass(frozen=True)
class Concentration:
    """How concentrated p = w / Σ w is, (n,) each; NaN in rows without weight."""

    n_eff: Tensor  # 1 / Σ p²
    perplexity: Tensor  # exp(−Σ p ln p)
    top1: Tensor  # the largest p
    top5: Tensor  # sum of the five largest p

    @classmethod
    def from_weights(cls, counted: CountedWeights) -> Concentration:
        """Compute it from single weights, divided by their sum before they are squared: tiny squares underflow."""
        p = (counted.weights / counted.total[:, None, None]).flatten(1)
        largest = row_top_k(p, min(TOP, p.shape[1]), torch.empty_like(p))
        perplexity = p.log().clamp_(min=_SMALLEST_LOG).mul_(p).sum(1).neg_().exp_()
        return cls(1 / row_dot(p, p), perplexity, largest.amax(1), largest.sum(1))

    @classmethod
    def uniform(cls, number: Tensor) -> Concentration:
        """Return that of `number` equal weights, (n,)."""
        n = number.where(number > 0, torch.nan)
        return cls(n, n, 1 / n, n.clamp(max=TOP) / n)
