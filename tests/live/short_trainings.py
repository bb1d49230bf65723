"""Fine-tune a small encoder that already tells items apart, with and without a fault."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from lossscope.live.monitor import LossScope

ITEMS, WIDTH = 2048, 24


class Encoder(nn.Module):
    """One encoder of both sides; its dropout is the only noise that a collapsed model still has."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Linear(WIDTH, 64), nn.ReLU()]
        for _ in range(4):
            layers += [nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.1)]
        self.net = nn.Sequential(*layers, nn.Linear(64, 32))

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.normalize(self.net(x), dim=1)


def softmax_loss(S: Tensor, tau: float) -> Tensor:
    """Return the mean cross-entropy of both directions."""
    pairs = torch.arange(len(S))
    return (nn.functional.cross_entropy(S / tau, pairs) + nn.functional.cross_entropy(S.T / tau, pairs)) / 2


@cache
def trained_encoder() -> Encoder:
    """Return an encoder that tells items apart, trained for a few hundred steps."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        encoder, (first, second) = Encoder(), both_sides()
        optimiser = torch.optim.Adam(encoder.parameters(), 1e-3)
        for _ in range(300):
            rows = torch.randperm(ITEMS)[:64]
            optimiser.zero_grad()
            softmax_loss(encoder(first[rows]) @ encoder(second[rows]).T, 0.07).backward()
            optimiser.step()
    return encoder


def both_sides() -> tuple[Tensor, Tensor]:
    """Return inputs of queries and of their documents, which share a signal."""
    random = torch.Generator().manual_seed(0)
    signal = torch.randn(ITEMS, WIDTH, generator=random)
    return tuple(signal + 0.3 * torch.randn(ITEMS, WIDTH, generator=random) for _ in range(2))  # type: ignore[return-value]


@dataclass
class Training:
    """A fine-tuning with Adam: `run` trains and watches."""

    tau: float = 0.05
    collapses_at: int | None = None  # from this step on the learning rate is huge
    shift: int = 0  # rows between a query and its document
    batch: int = 32
    warm_up: int = 0  # steps
    is_trained_before: bool = True
    lr: float = 1e-4
    says: dict[str, float] = field(default_factory=dict)  # of each step

    def run(self, scope: LossScope, steps: int = 40, seed: int = 0, **watched: Any) -> LossScope:
        """Train, watch and close the scope."""
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            encoder, (first, second) = Encoder(), both_sides()
            if self.is_trained_before:
                encoder.load_state_dict(trained_encoder().state_dict())
            optimiser = torch.optim.Adam(encoder.parameters(), self.lr)
            order = torch.randperm(ITEMS)
            for step in range(steps):
                lr = self.lr * min(1.0, (step + 1) / max(self.warm_up, 1))
                is_ill = self.collapses_at is not None and step >= self.collapses_at
                optimiser.param_groups[0]["lr"] = 3.0 if is_ill else lr
                rows = order[(torch.arange(self.batch) + step * self.batch) % ITEMS]
                Q, D = encoder(first[rows]), encoder(second.roll(self.shift, 0)[rows])
                scope.watch(queries=Q, documents=D, log={"lr": lr, **self.says}, **watched)
                optimiser.zero_grad()
                softmax_loss(Q @ D.T, self.tau).backward()
                optimiser.step()
        scope.close()
        return scope
