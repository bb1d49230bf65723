"""RSP: the hardest-negative hinge on a polynomial of the relative similarity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from lossscope.core.similarity import Mask
from lossscope.errors import InputError

from ._formulas import hardest_negative, positive_of
from .base import LossObjective, Traits
from .counting.hardest import HardestNegativeRule


@dataclass(frozen=True)
class RSP(LossObjective):
    """l_q = max(0, G(n − s₊) + margin), G(x) = a1 x + a2 x² + a3 x³, n the hardest negative.

    If several negatives are the hardest, the first one has the weight. a1 = 1, a2 = a3 = 0 (the default) is triplet_sh.
    Where G increases, the limit of the loss over ALL negatives (eq. 25) is this loss.
    W: G'(n − s₊) = a1 + 2 a2 x + 3 a3 x² on the hardest negative, minus that on the positive, if the loss is above 0;
    where G decreases it pulls the negative.
    Counted: |W|.
    Defaults: no released code is known and the Unified paper gives no coefficients, so the form and the coefficients
    of G are ours: the identity.
    Source: Wei et al. 2021, relative-similarity polynomial loss, as in Li et al. 2022, eq. 25.
    """

    margin: float = 0.2  # in similarity
    a1: float = 1.0  # linear coefficient of G
    a2: float = 0.0  # quadratic coefficient of G
    a3: float = 0.0  # cubic coefficient of G
    traits: ClassVar[Traits] = Traits(needs_warmup=True)
    caveat: ClassVar[str] = (
        "rsp at its defaults equals triplet_sh: the coefficients of its polynomial are not published; give "
        "rsp:a1=A,a2=B,a3=C"
    )
    caveat_of: ClassVar[tuple[str, ...]] = ("a1", "a2", "a3")

    def __post_init__(self) -> None:
        if not self.margin >= 0:
            raise InputError(f"margin must be >= 0; got {self.margin}")

    @property
    def rows_sum_to_zero(self) -> bool:
        return True

    @property
    def counting_rule(self) -> HardestNegativeRule:
        return HardestNegativeRule(self)

    def values(self, S: Tensor, mask: Mask) -> Tensor:
        hardest, _ = hardest_negative(S, mask)
        x = hardest - positive_of(S, mask)
        return (x * (self.a1 + x * (self.a2 + x * self.a3)) + self.margin).relu().squeeze(1)
