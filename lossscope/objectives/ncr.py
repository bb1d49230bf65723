"""NCR: the hardest-negative hinge with a margin for each pair, small where the pair is likely to be a mismatch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from lossscope.core.similarity import Mask
from lossscope.errors import InputError

from ._formulas import hardest_negative, positive_of
from .base import LossObjective, Traits
from .counting.hardest import HardestNegativeRule


@dataclass(frozen=True)
class NCR(LossObjective):
    """l_q = max(0, m(y_q) − s₊ + max_n s_n), m(y) = margin (base^y − 1)/(base − 1).

    If several negatives are the hardest, the first one has the weight.
    y in [0, 1] is the soft label of the query's pair, `mask.info["label"]` (q,); without labels y = 1, which is
    triplet_sh for every map. Training estimates the labels anew before each epoch after the warm-up
    (lossscope/training/soft_labels.py), unless --info has them; a probe has none.
    map=linear: m(y) = margin · y; map=sine: m(y) = margin (sin(pi y − pi/2)/2 + 1/2).
    Both directions use the query's own label (eq. 27 of the Unified paper); the released t2i uses that of each
    negative's pair instead.
    W: +1 on the hardest negative, −1 on the positive, if violating.
    Counted: 1 if violating.
    Defaults: margin 0.2, base 10 and exponential as released.
    Source: Huang et al. 2021, soft margin; Li et al. 2022, eq. 27.
    """

    margin: float = 0.2  # at label 1, in similarity
    base: float = 10.0  # of the exponential map
    map: Literal["exponential", "linear", "sine"] = "exponential"  # from the label to the margin
    traits: ClassVar[Traits] = Traits(
        statistics=("C_q", "C_q_all", "C_B", "C_0"), optional_info=("label",), needs_warmup=True, estimates_labels=True
    )
    caveat: ClassVar[str] = "the labels of ncr come from one network; in the paper two networks label for each other"

    def __post_init__(self) -> None:
        if not self.margin >= 0:
            raise InputError(f"margin must be >= 0; got {self.margin}")
        if not (self.base > 0 and self.base != 1):
            raise InputError(f"base must be > 0 and not 1; got {self.base}. Take map=linear for a base near 1")

    @property
    def rows_sum_to_zero(self) -> bool:
        return True

    @property
    def counting_rule(self) -> HardestNegativeRule:
        return HardestNegativeRule(self)

    def values(self, S: Tensor, mask: Mask) -> Tensor:
        hardest, _ = hardest_negative(S, mask)
        return (self.margins(S, mask) - positive_of(S, mask) + hardest).relu().squeeze(1)

    def margins(self, S: Tensor, mask: Mask) -> Tensor:
        """m(y), (q, 1). Raises InputError for labels of another shape or outside [0, 1]."""
        y = _labels(S, mask)
        if self.map == "linear":
            return self.margin * y
        if self.map == "sine":
            return self.margin * ((math.pi * y - math.pi / 2).sin() / 2 + 1 / 2)
        return self.margin * ((self.base**y - 1) / (self.base - 1))


def _labels(S: Tensor, mask: Mask) -> Tensor:
    """(q, 1) y, one number a query."""
    label = mask.info.get("label")
    if label is None:
        return S.new_ones(len(S), 1)
    if label.shape != (len(S),):
        raise InputError(f"mask.info['label'] must be one number a query, ({len(S)},); got {tuple(label.shape)}")
    wrong = ~((label >= 0) & (label <= 1))
    if bool(wrong.any()):
        row = int(torch.nonzero(wrong)[0])
        raise InputError(f"labels must be between 0 and 1; got {float(label[row])} for usable query {row}")
    return label.to(S)[:, None]
