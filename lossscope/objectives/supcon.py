"""SupCon: the supervised contrastive loss, NT-Xent for queries with several positives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from lossscope.core.similarity import Mask
from lossscope.errors import InputError

from .base import LossObjective, Traits


@dataclass(frozen=True)
class SupCon(LossObjective):
    """l_q = −(1/|P|) Σ_{p∈P} log softmax(S_q / tau)_p.

    form=in: l_q = −log((1/|P|) Σ_{p∈P} softmax(S_q / tau)_p).
    The softmax is over ALL valid candidates, the positives included; the anchor is no candidate, as it is of the other
    modality. With one positive both forms are ntxent.
    W: (softmax − t) / tau, t = 1/|P| on each positive (out), or its share of the softmax among the positives (in).
    Counted: |W| (with 1/tau, unlike ntxent).
    Training: 0.5 (mean i2t + mean t2i), ours: the paper has one modality.
    Defaults: out and tau 0.1, as in the paper; the released code multiplies the loss by tau/0.07, which is left out.
    Source: Khosla et al. 2020, eq. 2 and 3.
    """

    tau: float = 0.1  # temperature
    form: Literal["out", "in"] = "out"  # mean over positives outside or inside the logarithm
    traits: ClassVar[Traits] = Traits(positives="many", directions=0.5, reduction="mean")

    def __post_init__(self) -> None:
        if not self.tau > 0:
            raise InputError(f"tau must be > 0; got {self.tau}")

    @property
    def rows_sum_to_zero(self) -> bool:
        return True

    def values(self, S: Tensor, mask: Mask) -> Tensor:
        logits, number = S / self.tau, mask.positives.sum(1)
        log_sum = logits.masked_fill(~mask.valid, -torch.inf).logsumexp(1)
        if self.form == "in":
            return log_sum - logits.masked_fill(~mask.positives, -torch.inf).logsumexp(1) + number.to(S.dtype).log()
        return log_sum - logits.masked_fill(~mask.positives, 0).sum(1) / number

    def closed_form(self, S: Tensor, mask: Mask) -> tuple[Tensor, Tensor]:
        share = (S / self.tau).masked_fill(~mask.valid, -torch.inf).softmax(1)
        if self.form == "in":
            target = (S / self.tau).masked_fill(~mask.positives, -torch.inf).softmax(1)
        else:
            target = mask.positives / mask.positives.sum(1, keepdim=True).to(S.dtype)
        return self.values(S, mask), share.sub_(target).div_(self.tau)
