"""Weights of one size on every negative above a cut that the positive alone decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import torch
from torch import Tensor

from lossscope.core.counts import Counts

from .base import Answer, Side, Undecided, around, zeroed
from .buffers import Space
from .concentration import Spread
from .rows import Known, Whole


@dataclass(frozen=True)
class Hinge:
    """w_n = 1 where s_n > s₊ − margin, else 0; the positive weighs as much as they together."""

    margin: float
    compares: ClassVar[bool] = True

    def side(self, known: Known, eps: Sequence[float], space: Space, collect: bool) -> Side:
        """Sums of one direction."""
        return _Number(self, known, space)

    def of(self, whole: Whole) -> Answer:
        """The number of negatives that violate the margin says it all."""
        return _Violations(self, whole)

    def cut(self, best: Tensor) -> Tensor:
        """(n,) what a negative must be above; s > −(m − s₊) is exactly m − s₊ + s > 0."""
        return (-(self.margin - best)).where(best > -torch.inf, torch.inf)


@dataclass(frozen=True, eq=False)
class _Violations(Answer):
    form: Hinge
    whole: Whole

    @cached_property
    def number(self) -> Tensor:
        """(n,) negatives above the cut."""
        return zeroed(self.whole.above(self.form.cut(self.whole.known.best)).sum(1), self.whole.usable)

    def counts(self, eps: float) -> Counts:
        """What the objective's paper counts."""
        return _counts(self.number, self.whole.usable, eps)

    def spread(self) -> Spread:
        """Of equal weights."""
        return Spread.even(self.number)


class _Number(Side):
    """number: (n,) negatives above the cut."""

    def __init__(self, form: Hinge, known: Known, space: Space) -> None:
        self.known, self.space = known, space
        self.cut = form.cut(known.best)
        self.number = torch.zeros(len(self.cut), dtype=torch.float64, device=self.cut.device)

    def add(self, tile: Tensor, rows: slice, dim: int) -> None:
        truth = torch.gt(tile, self.cut[rows].unsqueeze(dim), out=self.space.like(tile))
        self.number[rows] += self.space.total(truth, dim)

    def undecided(self, tile: Tensor, rows: slice, dim: int, error: Tensor) -> Sequence[Undecided]:
        return (around(self.cut[rows], error),)

    def counts(self, eps: float) -> Counts:
        return _counts(zeroed(self.number, self.known.usable).to(self.cut.dtype), self.known.usable, eps)

    def state(self) -> dict[str, Any]:
        return {"number": self.number}

    def merge(self, states: Sequence[dict[str, Any]]) -> None:
        self.number = torch.stack([state["number"] for state in states]).sum(0)


def _counts(number: Tensor, usable: Tensor, eps: float) -> Counts:
    """Of so many weights of size 1."""
    none = torch.zeros_like(number)
    above, low = (number, none) if eps < 1 else (none, number)
    return Counts(above, above, low, number, number.where(number > 0, torch.nan), skipped=~usable)
