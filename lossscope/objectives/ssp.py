"""SSP: a polynomial of the similarity of the positive plus one of that of the hardest negative."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor

from lossscope.core.similarity import Mask
from lossscope.errors import InputError

from ._formulas import hardest_negative, positive_of
from .base import LossObjective, Traits
from .counting.hardest import HardestNegativeRule

NEAR_ONE = 1 - 1e-5


@dataclass(frozen=True)
class SSP(LossObjective):
    """l_q = [n + margin > s₊] ([p2 s₊² + p1 s₊ + p0]₊ + [n2 n² + n1 n + n0]₊), n the hardest negative.

    Also 0 where s₊ ≥ 1 − 1e-5. clamp=parts clamps each polynomial at 0, as the released code does; clamp=sum clamps
    their sum, as the paper's equation does. If several negatives are the hardest, the first one has the weight.
    W: 2 p2 s₊ + p1 on the positive, 2 n2 n + n1 on the hardest negative, 0 where clamped. By default the first is
    between −1.1 and −0.3, and the second PULLS the negative where n < 0.22; with clamp=parts only where n < 0.096, as
    it is clamped from there to 0.349.
    Counted: |W|.
    Training: (sum i2t + sum t2i) / B.
    Defaults: coefficients and margin of the released code.
    Source: Wei et al. 2020, self-similarity polynomial loss.
    """

    p2: float = 0.2  # quadratic coefficient of the positive
    p1: float = -0.7  # linear coefficient of the positive
    p0: float = 0.5  # constant of the positive
    n2: float = 0.9  # quadratic coefficient of the negative
    n1: float = -0.4  # linear coefficient of the negative
    n0: float = 0.03  # constant of the negative
    margin: float = 0.2  # in similarity
    clamp: Literal["parts", "sum"] = "parts"  # clamp each polynomial at 0, or their sum
    traits: ClassVar[Traits] = Traits(reduction="pairs", needs_warmup=True)

    def __post_init__(self) -> None:
        if not self.margin >= 0:
            raise InputError(f"margin must be >= 0; got {self.margin}")

    @property
    def counting_rule(self) -> HardestNegativeRule:
        return HardestNegativeRule(self)

    def values(self, S: Tensor, mask: Mask) -> Tensor:
        positive, (hardest, _) = positive_of(S, mask), hardest_negative(S, mask)
        pull = self.p2 * positive.square() + self.p1 * positive + self.p0
        push = self.n2 * hardest.square() + self.n1 * hardest + self.n0
        active = (hardest + self.margin > positive) & (positive < NEAR_ONE)
        value = (pull + push).relu() if self.clamp == "sum" else pull.relu() + push.relu()
        return value.masked_fill(~active, 0).squeeze(1)
