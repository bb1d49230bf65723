"""GOAL: the gradient stated directly, as a triplet weight times a pair weight on the hardest negative."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from lossscope.core.similarity import Mask
from lossscope.errors import InputError

from ._formulas import hardest_negative, positive_of
from .base import Gradient, Traits
from .counting.hardest import HardestNegativeRule


@dataclass(frozen=True)
class Goal(Gradient):
    """l_q: none, the gradient is stated; W = ±T · P on the hardest negative and the positive.

    Triplet weight T:
        con: [margin + s_n* − s₊ > 0]
        nca: sigmoid(tau (s_n* − s₊))
        cir: sigmoid(tau (s_n*² − s₊(2 − s₊)))
    Pair weights P₊, P₋:
        con: 1, 1
        lin: 1 − s₊, s_n*
        sig: sigmoid(−alpha (s₊ − lam)), sigmoid(beta (s_n* − lam))
        lin-ms: (1 − m₊)(1 − s₊), (1 + m₋) s_n*
        sig-ms: 1/(m₊ + e^{alpha (s₊ − lam)}), 1/(m₋ + e^{−beta (s_n* − lam)})
    Relative terms m₊, m₋: means over the OTHER rows' positives R₊ < s_n* + ms_eps and this row's other negatives R₋ >
    (smallest positive of the batch) − ms_eps; 0 over an empty set. m_plus and m_minus replace them by constants, as in
    diagrams. They are the means of
        lin-ms: s₊ − R₊, s_n* − R₋
        sig-ms: e^{alpha (s₊ − R₊)}, e^{−beta (s_n* − R₋)}
    W: +T·P₋ on the hardest negative n*, −T·P₊ on the positive.
    Counted: |W|.
    Training: sum i2t + sum t2i. Variant `released`: no margin in con, −0.5 inside cir, ≤ and ≥ in the relative terms
    (E8).
    Source: Xuan & Chen 2023, eq. 5-13.
    """

    triplet: Literal["con", "nca", "cir"] = "con"  # triplet weight T
    pair: Literal["con", "lin", "sig", "lin-ms", "sig-ms"] = "con"  # pair weights P
    tau: float = 10.0  # steepness of T, for nca and cir
    margin: float = 0.2  # of T, for con
    alpha: float = 2.0  # steepness of P of positives, for sig and sig-ms
    beta: float = 10.0  # steepness of P of negatives, for sig and sig-ms
    lam: float = 0.5  # similarity where the exponents of P are 0, for sig and sig-ms
    ms_eps: float = 0.1  # by how much a relative positive or negative may be easier, for lin-ms and sig-ms
    m_plus: float | None = None  # constant in place of the relative term of positives
    m_minus: float | None = None  # constant in place of the relative term of negatives
    variant: Literal["paper", "released"] = "paper"  # formulas of the paper or of the released code
    traits: ClassVar[Traits] = Traits(relative=("m_plus", "m_minus"), needs_warmup=True)

    def __post_init__(self) -> None:
        if not (self.tau > 0 and self.margin >= 0):
            raise InputError(f"tau must be > 0 and margin >= 0; got {self.tau} and {self.margin}")

    @property
    def coupled(self) -> bool:
        """True for the -ms pair weights, whose relative terms depend on other rows, unless both are given."""
        return self.pair.endswith("-ms") and (self.m_plus is None or self.m_minus is None)

    @property
    def rows_sum_to_zero(self) -> bool:
        return self.pair == "con"

    @property
    def counting_rule(self) -> HardestNegativeRule | None:
        return None if self.coupled else HardestNegativeRule(self)

    def weights(self, S: Tensor, mask: Mask) -> Tensor:
        s_pos = positive_of(S, mask)
        s_neg, column = hardest_negative(S, mask)
        T = self._triplet_weight(s_pos, s_neg)
        P_pos, P_neg = self._pair_weights(S, mask, s_pos, s_neg, column)
        W = torch.zeros_like(S).scatter_(1, column, T if P_neg is None else T * P_neg)
        return W.scatter_(1, mask.first_positive, -T if P_pos is None else -T * P_pos)

    def _triplet_weight(self, s_pos: Tensor, s_neg: Tensor) -> Tensor:
        released = self.variant == "released"
        if self.triplet == "con":
            return torch.ones_like(s_pos) if released else (self.margin - s_pos + s_neg > 0).to(s_pos.dtype)
        if self.triplet == "nca":
            return (self.tau * (s_neg - s_pos)).sigmoid()
        shift = 0.5 if released else 0.0
        return (self.tau * (s_neg.square() + shift - s_pos * (2 - s_pos))).sigmoid()

    def _pair_weights(
        self, S: Tensor, mask: Mask, s_pos: Tensor, s_neg: Tensor, column: Tensor
    ) -> tuple[Tensor | None, Tensor | None]:
        """(q, 1) P₊ and P₋; None stands for 1."""
        a, b = self.alpha, self.beta
        if self.pair == "con":
            return None, None
        if self.pair == "lin":
            return 1 - s_pos, s_neg
        if self.pair == "sig":
            return (-a * (s_pos - self.lam)).sigmoid(), (b * (s_neg - self.lam)).sigmoid()
        m_pos = self._relative_positive(s_pos, s_neg)
        m_neg = self._relative_negative(S, mask, s_pos, s_neg, column)
        if self.pair == "lin-ms":
            return (1 - m_pos) * (1 - s_pos), (1 + m_neg) * s_neg
        return 1 / (m_pos + (a * (s_pos - self.lam)).exp()), 1 / (m_neg + (-b * (s_neg - self.lam)).exp())

    def _relative_positive(self, s_pos: Tensor, s_neg: Tensor) -> Tensor:
        """(q, 1) m₊, over the positives of the other rows; needs (q, q) memory unless it is given."""
        if self.m_plus is not None:
            return torch.full_like(s_pos, self.m_plus)
        others = ~torch.eye(len(s_pos), dtype=torch.bool, device=s_pos.device)
        within = others & self._is_above(s_neg + self.ms_eps, s_pos.T)
        gap = s_pos - s_pos.T
        return _mean((self.alpha * gap).exp() if self.pair == "sig-ms" else gap, within)

    def _relative_negative(self, S: Tensor, mask: Mask, s_pos: Tensor, s_neg: Tensor, column: Tensor) -> Tensor:
        """(q, 1) m₋, over the other negatives of the row."""
        if self.m_minus is not None:
            return torch.full_like(s_neg, self.m_minus)
        within = (mask.negatives & self._is_above(S, s_pos.min() - self.ms_eps)).scatter(1, column, False)
        gap = s_neg - S
        return _mean((-self.beta * gap).exp() if self.pair == "sig-ms" else gap, within)

    def _is_above(self, a: Tensor, b: Tensor) -> Tensor:
        """a > b, as the paper has it; a ≥ b, as the released code has it."""
        return a >= b if self.variant == "released" else a > b


def _mean(values: Tensor, within: Tensor) -> Tensor:
    """(q, 1) mean over the entries within; 0 where there is none."""
    return values.masked_fill(~within, 0).sum(1, keepdim=True) / within.sum(1, keepdim=True).clamp(min=1)
