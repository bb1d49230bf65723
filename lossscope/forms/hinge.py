"""Weights of one size on every negative above a cut that the positive alone decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from ..objectives.base import Counts, Objective
from .base import Known, Side, Undecided, around, zeroed
from .space import Space


@dataclass(frozen=True)
class Hinge:
    """w_n = 1 where s_n > s₊ − margin, else 0; the positive weighs as much as they together."""

    margin: float
    compares: ClassVar[bool] = True

    def side(self, objective: Objective, known: Known, eps: Sequence[float], space: Space, collect: bool) -> Side:
        """Sums of one direction."""
        return _Number(self, known, space)


class _Number(Side):
    """number: (n,) negatives above the cut."""

    def __init__(self, form: Hinge, known: Known, space: Space) -> None:
        self.known, self.space = known, space
        best = known.best
        self.cut = -(form.margin - best)  # s > −(m − s₊) is exactly m − s₊ + s > 0
        self.cut[best == -torch.inf] = torch.inf
        self.number = torch.zeros(len(best), dtype=torch.float64, device=best.device)

    def add(self, tile: Tensor, rows: slice, dim: int) -> None:
        truth = torch.gt(tile, self.cut[rows].unsqueeze(dim), out=self.space.like(tile))
        self.number[rows] += self.space.total(truth, dim)

    def undecided(self, tile: Tensor, rows: slice, dim: int, error: Tensor) -> Sequence[Undecided]:
        return (around(self.cut[rows], error),)

    def counts(self, eps: float) -> Counts:
        usable = self.known.usable
        number = zeroed(self.number, usable).to(self.cut.dtype)
        none = torch.zeros_like(number)
        above, low = (number, none) if eps < 1 else (none, number)
        return Counts(above, above, low, number, number.where(number > 0, torch.nan), skipped=~usable)

    def state(self) -> dict[str, Any]:
        return {"number": self.number}

    def merge(self, states: Sequence[dict[str, Any]]) -> None:
        self.number = torch.stack([state["number"] for state in states]).sum(0)
