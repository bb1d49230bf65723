"""Unified loss: a smooth triplet loss over all negatives, between hardest-negative triplet and contrastive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from lossscope.core.cached import cached_property
from lossscope.core.similarity import Mask
from lossscope.errors import InputError
from lossscope.registry import build

from ._formulas import cross_entropy, positive_of
from .base import LossObjective, Traits
from .counting.softmax import SoftmaxRule


@dataclass(frozen=True)
class Unified(LossObjective):
    """l_q = (1/gamma) log(1 + Σ_n exp(gamma (w_n s_n − w₊ s₊ + m_q))).

    w = 1 and m_q = margin unless they are in the mask: `mask.info["weight"]` is (q, c), a weight of each similarity
    (eq. 24), or (q,), one of each positive; `mask.info["margin"]` is (q,), a margin of each row (eq. 26). With weights
    the rows of W do not sum to 0. Raises InputError for weights or margins of another shape.
    weights=ssp: the polynomials of SSP, w_n = 0.9 s_n − 0.4 and w₊ = 0.7 − 0.2 s₊, which have a gradient. With
    margin=0.53, the sum of SSP's constants, gamma → ∞ is then max(0, max_n P_n(s_n) + P₊(s₊)) of its polynomials P.
    margins=ncr: m_q = margin (10^y − 1)/9 of the pair's label y, `mask.info["label"]` (q,), which training estimates as
    for ncr; gamma → ∞ is ncr (eq. 27).
    gamma → ∞ gives triplet_sh; gamma · unified(margin=0) = vlc.
    W: w_n e_n / (1 + Σ e) on negatives with e_n = exp(gamma (w_n s_n − w₊ s₊ + m_q)); −w₊ Σ e / (1 + Σ e) on the
    positive.
    Counted: |W|, which is in [0, 1] where w = 1.
    Defaults: gamma 60, the paper's for VSE++ on regions (50 for its other models).
    Source: Li et al. 2022, eq. 5, 24 and 26.
    """

    margin: float = 0.2  # in similarity
    gamma: float = 60.0  # scale; the larger, the more the hardest negative dominates
    weights: Literal["ssp"] | None = None  # ssp: its polynomials weigh the similarities; none: 1, or --info has it
    margins: Literal["ncr"] | None = None  # ncr: margins of estimated labels; none: margin, or --info has them

    @property
    def traits(self) -> Traits:  # type: ignore[override]
        """Numbers of a pair that `weights` and `margins` do not give."""
        weight, by_label = () if self.weights else ("weight",), self.margins is not None
        return Traits(optional_info=("label" if by_label else "margin", *weight), estimates_labels=by_label)

    def __post_init__(self) -> None:
        if not (self.gamma > 0 and self.margin >= 0):
            raise InputError(f"gamma must be > 0 and margin >= 0; got {self.gamma} and {self.margin}")

    @property
    def rows_sum_to_zero(self) -> bool:
        return self.weights is None

    @property
    def counting_rule(self) -> SoftmaxRule | None:
        if self.weights is not None:
            return None
        return SoftmaxRule(self.gamma, lead=-self.gamma * self.margin)

    def values(self, S: Tensor, mask: Mask) -> Tensor:
        S = S * (_weight(S, mask) if self.weights is None else self._polynomial_weight(S, mask))
        excess = (S - positive_of(S, mask) + self._margins(S, mask)).masked_fill(mask.non_negatives, -torch.inf)
        exponents = torch.cat([torch.zeros_like(excess[:, :1]), self.gamma * excess], dim=1)
        return exponents.logsumexp(1) / self.gamma

    def closed_form(self, S: Tensor, mask: Mask) -> tuple[Tensor, Tensor] | None:
        if self.weights is not None:
            return None  # the weights have a gradient
        weight = _weight(S, mask)
        logits = S * (self.gamma * weight)
        lead = (-self.gamma * self._margins(S, mask)).expand(len(S), 1)
        values, W = cross_entropy(logits.scatter_add_(1, mask.first_positive, lead), mask)
        return values / self.gamma, W if isinstance(weight, float) else W * weight

    def _polynomial_weight(self, S: Tensor, mask: Mask) -> Tensor:
        """(q, c) w whose product with S is the polynomials of SSP, without their constants."""
        ssp = self._ssp
        on_positive = torch.zeros_like(mask.match).scatter(1, mask.first_positive, True)
        return torch.where(on_positive, -(ssp.p1 + ssp.p2 * S), ssp.n1 + ssp.n2 * S)

    @cached_property
    def _ssp(self) -> Any:
        return build("objectives", "ssp")

    @cached_property
    def _ncr(self) -> Any:
        return build("objectives", f"ncr:margin={self.margin!r}")

    def _margins(self, S: Tensor, mask: Mask) -> Tensor:
        """(q, 1) or (1, 1), m_q."""
        if self.margins == "ncr":
            margins: Tensor = self._ncr.margins(S, mask)
            return margins
        given = mask.info.get("margin")
        return S.new_full((1, 1), self.margin) if given is None else _check_shape("margin", given, S)[:, None]


def _weight(S: Tensor, mask: Mask) -> Tensor | float:
    """(q, c) weight on each similarity, or 1."""
    given = mask.info.get("weight")
    if given is None:
        return 1.0
    if given.ndim == 2:
        return _check_shape("weight", given, S)
    return torch.ones_like(S).scatter(1, mask.first_positive, _check_shape("weight", given, S)[:, None])


def _check_shape(name: str, given: Tensor, S: Tensor) -> Tensor:
    if given.shape != S.shape[: given.ndim]:
        raise InputError(f"{name} must be {tuple(S.shape)} or ({len(S)},); got {tuple(given.shape)}")
    return given.to(S)
