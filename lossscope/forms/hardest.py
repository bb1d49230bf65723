"""Weights on the hardest negative and the positive alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from ..objectives.base import Counts, Objective
from ..similarity import Mask
from .base import Known, Side, Undecided, leading
from .space import Space


@dataclass(frozen=True)
class Hardest:
    """w depends on (s₊, max_n s_n) only: the objective is asked about rows of these two."""

    compares: ClassVar[bool] = True

    def side(self, objective: Objective, known: Known, eps: Sequence[float], space: Space, collect: bool) -> Side:
        """Sums of one direction."""
        return _Top(objective, known)


class _Top(Side):
    """top: (n,) the hardest negative."""

    def __init__(self, objective: Objective, known: Known) -> None:
        self.objective, self.known = objective, known
        self.top = torch.full_like(known.best, -torch.inf)

    def add(self, tile: Tensor, rows: slice, dim: int) -> None:
        self.top[rows] = torch.maximum(self.top[rows], tile.amax(dim))

    def undecided(self, tile: Tensor, rows: slice, dim: int, error: Tensor) -> Sequence[Undecided]:
        return (leading(tile, dim, self.top[rows], error),)

    def counts(self, eps: float) -> Counts:
        S = torch.stack([self.known.best, self.top], 1)
        valid = -torch.inf < S
        match = torch.zeros_like(valid)
        match[:, 0] = True
        found: Counts = self.objective.counted(S.where(valid, 0.0), Mask(match, valid)).threshold(eps)
        return found

    def state(self) -> dict[str, Any]:
        return {"top": self.top}

    def merge(self, states: Sequence[dict[str, Any]]) -> None:
        self.top = torch.stack([state["top"] for state in states]).amax(0)
