"""Multi-similarity loss: soft sums over hard positives and hard negatives, mined relative to each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from lossscope.core.similarity import Mask
from lossscope.errors import InputError

from .base import LossObjective, Traits


@dataclass(frozen=True)
class MultiSimilarity(LossObjective):
    """l_q = (1/alpha) log(1 + Σ_p exp(−alpha (s_p − lam))) + (1/beta) log(1 + Σ_n exp(beta (s_n − lam))).

    With mining, the sums are over the n with s_n + ms_eps > min_p s_p and the p with s_p − ms_eps < max_n s_n (strict);
    where none is kept, the sum is 0 and so is its W. The selection has no gradient.
    W: −e_p / (1 + Σ e_p) on kept positives, e_n / (1 + Σ e_n) on kept negatives, e the exponentials: both in [−1, 1].
    Counted: |W|.
    Training: 0.5 (mean i2t + mean t2i). The mean counts rows that keep nothing, as the released code does.
    Defaults: alpha 2 and ms_eps 0.1 in the paper and in its released code; beta 50 in the paper (released: 40);
    lam 0.5 in the released code (the paper: 1). pytorch-metric-learning: 2, 50, 0.5, and the mining apart.
    The released code also drops positives with s ≥ 1 − 1e-5, to drop the query itself, which is no candidate here.
    Source: Wang et al. 2019, general pair weighting: mining and L_MS.
    """

    alpha: float = 2.0  # scale of the exponents of positives
    beta: float = 50.0  # scale of the exponents of negatives
    lam: float = 0.5  # similarity where the exponents are 0
    mining: bool = True  # keep only positives and negatives that are hard relative to each other
    ms_eps: float = 0.1  # by how much a kept positive or negative may be easier
    traits: ClassVar[Traits] = Traits(positives="many", directions=0.5, reduction="mean")

    def __post_init__(self) -> None:
        if not (self.alpha > 0 and self.beta > 0):
            raise InputError(f"alpha and beta must be > 0; got {self.alpha} and {self.beta}")

    def values(self, S: Tensor, mask: Mask) -> Tensor:
        kept_p, kept_n = self._mine(S, mask) if self.mining else (mask.positives, mask.negatives)
        pull = _log_one_plus_sum(-self.alpha * (S - self.lam), kept_p) / self.alpha
        push = _log_one_plus_sum(self.beta * (S - self.lam), kept_n) / self.beta
        return pull + push

    def _mine(self, S: Tensor, mask: Mask) -> tuple[Tensor, Tensor]:
        """(q, c) bool: the positives that are kept, and the negatives that are kept."""
        s = S.detach()
        lowest = s.masked_fill(~mask.positives, torch.inf).amin(1, keepdim=True)
        hardest = s.masked_fill(mask.non_negatives, -torch.inf).amax(1, keepdim=True)
        return mask.positives & (s - self.ms_eps < hardest), mask.negatives & (s + self.ms_eps > lowest)


def _log_one_plus_sum(exponents: Tensor, kept: Tensor) -> Tensor:
    """(q,) log(1 + Σ exp) over the kept entries of each row; 0 where there is none."""
    masked = exponents.masked_fill(~kept, -torch.inf)
    return torch.cat([torch.zeros_like(masked[:, :1]), masked], dim=1).logsumexp(1)
