"""Run small training loops with and without a fault: two towers of a signal that both sides share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from lossscope.core.similarity import Mask
from lossscope.live.monitor import LossScope
from lossscope.registry import build

PAIRS, ITEMS = 32, 512
HEALTHY = 0.003  # learning rate


@dataclass
class Loop:
    """A watched loop: `run` trains it."""

    objective: str = "ntxent:tau=0.1"
    lr: float = HEALTHY  # of Adam
    begins: int = 0  # first step of the fault
    ends: int = 1 << 30  # first step without it
    axis: int = 1  # normalised over
    divides: bool = False  # whether the scope gets S divided by the temperature
    zero_at: int | None = None  # step with a vector of zeros, divided by its length
    detached: bool = False  # whether the second tower is a constant
    takes_similarities: bool = False
    seed: int = 0

    def run(self, scope: LossScope, steps: int = 400, on_step: Callable[[int], None] | None = None) -> LossScope:
        """Train and watch.

        Args:
            scope: watches each step.
            steps: number of steps.
            on_step: called with its number before each step.
        """
        with torch.random.fork_rng():
            torch.manual_seed(self.seed)
            X = torch.randn(ITEMS, 24)
            Y = X @ torch.randn(24, 24) / 5 + 0.1 * torch.randn(ITEMS, 24)
            towers = [nn.Sequential(nn.Linear(24, 48), nn.ReLU(), nn.Linear(48, 16)) for _ in range(2)]
            optimiser = torch.optim.Adam([*towers[0].parameters(), *towers[1].parameters()], HEALTHY)
            for step in range(steps):
                if on_step is not None:
                    on_step(step)
                is_ill = self.begins <= step < self.ends
                optimiser.param_groups[0]["lr"] = self.lr if is_ill else HEALTHY
                (self if is_ill else Loop(self.objective, takes_similarities=self.takes_similarities))._step(
                    scope, step, towers, optimiser, X, Y
                )
        return scope

    def _step(
        self, scope: LossScope, step: int, towers: Any, optimiser: torch.optim.Adam, X: Tensor, Y: Tensor
    ) -> None:
        rows = torch.randperm(len(X))[:PAIRS]
        first, second = towers[0](X[rows]), towers[1](Y[rows])
        if self.detached:
            second = second.detach().mean(0, keepdim=True) + 1e-3 * torch.randn(PAIRS, 16)
        if step == self.zero_at:
            first = torch.cat([first[:-1], torch.zeros(1, 16)])
        Q, D = (x / x.norm(dim=self.axis, keepdim=True) for x in (first, second))
        S = Q @ D.T
        objective = build("objectives", self.objective)
        if self.takes_similarities:
            scope.watch(S / 0.1 if self.divides else S, step=step)
        else:
            scope.watch(queries=Q, documents=D, step=step, ids=rows)
        mask = torch.eye(PAIRS, dtype=torch.bool)
        if not bool(S.isfinite().all()):
            return
        both = [objective(s, Mask(mask, torch.ones_like(mask))).W for s in (S.detach(), S.detach().T.contiguous())]
        optimiser.zero_grad()
        S.backward((both[0] + both[1].T) / PAIRS)
        optimiser.step()
