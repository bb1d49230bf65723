"""ArcFace: softmax over class vectors, with a margin on the angle to the item's own class."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from lossscope.core.counts import CountedWeights, counted_from_weights
from lossscope.core.similarity import Mask, largest_beyond_cosines
from lossscope.core.types import Convention
from lossscope.errors import InputError

from ._formulas import cross_entropy, positive_of
from .base import LossObjective, Traits


@dataclass(frozen=True)
class ArcFace(LossObjective):
    """l_q = −log softmax(scale z)[+], z₊ = cos(θ₊ + margin), z_n = s_n, θ₊ = arccos s₊.

    The softmax is over ALL valid candidates. Beyond θ₊ = π − margin z₊ = s₊ − margin sin(margin), so that z₊ keeps
    falling, as in the released code and in pytorch-metric-learning; the paper does not say it.
    W: scale p_n on a negative; −scale (1 − p₊) (cos(margin) + sin(margin) s₊/√(1 − s₊²)) on the positive, without the
    second term at s₊ = ±1, where no direction is defined. So the pull is larger than the push.
    Counted: the softmax probability of each negative (without scale), and |W| / scale on the positive.
    Training: mean i2t + mean t2i, ours: the paper has one direction, items against all class vectors.
    Defaults: the paper's. pytorch-metric-learning takes the margin in degrees, 28.6, which is 0.499 rad.
    Source: Deng et al. 2019, eq. 3.
    """

    margin: float = 0.5  # angle in radians
    scale: float = 64.0  # factor on cosines, 1/tau
    traits: ClassVar[Traits] = Traits(reduction="mean")

    def __post_init__(self) -> None:
        if not 0 <= self.margin <= math.pi:
            raise InputError(f"margin must be an angle of 0 to pi radians, 0.5 for 28.6 degrees; got {self.margin}")
        if not self.scale > 0:
            raise InputError(f"scale must be > 0; got {self.scale}")

    def values(self, S: Tensor, mask: Mask) -> Tensor:
        moved, _ = self._moved(positive_of(S, mask))
        logits = self.scale * S.scatter(1, mask.first_positive, moved)
        return logits.masked_fill(~mask.valid, -torch.inf).logsumexp(1) - self.scale * moved.squeeze(1)

    def closed_form(self, S: Tensor, mask: Mask) -> tuple[Tensor, Tensor]:
        moved, slope = self._moved(positive_of(S, mask))
        values, gradient = cross_entropy(self.scale * S.scatter(1, mask.first_positive, moved), mask)
        pull = gradient.gather(1, mask.first_positive) * slope
        return values, gradient.scatter_(1, mask.first_positive, pull).mul_(self.scale)

    @property
    def paper_scale(self) -> float:
        return self.scale

    def counted_weights(self, S: Tensor, mask: Mask, convention: Convention = "corrected") -> CountedWeights:
        self.require(convention)
        return counted_from_weights(self(S, mask).W.abs() / self.scale, mask)

    def _moved(self, s: Tensor) -> tuple[Tensor, Tensor]:
        """(q, 1) z₊ of s₊, and dz₊/ds₊. Raises InputError for similarities that are no cosines."""
        if (largest := largest_beyond_cosines(s)) is not None:
            raise InputError(f"arcface needs cosines, as its margin is an angle; got a similarity of {largest:.3g}")
        square = 1 - s.square()
        is_angle = square > 0
        sine = square.where(is_angle, 1.0).sqrt()
        falls = s.detach() >= -math.cos(self.margin)  # θ₊ + margin <= π
        rotated = s * math.cos(self.margin) - sine.where(is_angle, 0.0) * math.sin(self.margin)
        slope = math.cos(self.margin) + math.sin(self.margin) * (s.detach() / sine.detach()).where(is_angle, 0.0)
        return rotated.where(falls, s - self.margin * math.sin(self.margin)), slope.where(falls, 1.0)
