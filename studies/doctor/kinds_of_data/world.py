"""Draw items with a latent, seen from two sides, and train small encoders of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

from .base import Arrays

WIDTH = 96  # of the inputs of an encoder
HIDDEN = 128


@dataclass
class Trained:
    """The losses of a training, and its dumps."""

    losses: list[float] = field(default_factory=list)
    taken: dict[int, Arrays] = field(default_factory=dict)


def latents(n: int, rank: int, rng: np.random.Generator, groups: int = 0) -> tuple[Tensor, np.ndarray]:
    """Return latents (n, rank) and their groups (n,); items of a group have two thirds of their variance in common."""
    group = rng.integers(0, max(groups, 1), n)
    z = rng.normal(size=(n, rank))
    if groups:
        z = np.sqrt(2 / 3) * rng.normal(size=(groups, rank))[group] + np.sqrt(1 / 3) * z
    return torch.from_numpy(z).float(), group


def look(z: Tensor, noise: float, side: int, seed: int, draw: int = 0) -> Tensor:
    """Return inputs (n, WIDTH) of one side: a fixed function of the latent, with noise.

    Args:
        z: latents.
        noise: its deviation, beside features of deviation 0.6.
        side: which function.
        seed: of the function.
        draw: of the noise.
    """
    generator = torch.Generator().manual_seed(1000 * seed + side)
    A = torch.randn(z.shape[1], WIDTH, generator=generator) / z.shape[1] ** 0.5
    generator.manual_seed(100_000 + 1000 * seed + 10 * draw + side)
    return torch.tanh(z @ A) + noise * torch.randn(len(z), WIDTH, generator=generator)


def encoder(d: int, bottleneck: int = 0) -> nn.Module:
    """Return a small perceptron; with a bottleneck its last layer has that rank."""
    last = [nn.Linear(HIDDEN, bottleneck), nn.Linear(bottleneck, d)] if bottleneck else [nn.Linear(HIDDEN, d)]
    return nn.Sequential(nn.Linear(WIDTH, HIDDEN), nn.ReLU(), *last)


def softmax_loss(S: Tensor, tau: float) -> Tensor:
    """Return the mean of both directions of a softmax over (B, B) cosines whose diagonal is positive."""
    target = torch.arange(len(S))
    return (cross_entropy(S / tau, target) + cross_entropy(S.T / tau, target)) / 2


def unit(x: Tensor) -> Tensor:
    """Return rows of unit length."""
    return normalize(x, dim=1)


def train(
    parameters: Sequence[Tensor],
    loss_of_step: Callable[[int], Tensor],
    steps: int,
    lr: float | Callable[[int], float],
    take: Callable[[], Arrays],
    at: Sequence[int],
    plain: bool = False,
) -> Trained:
    """Train; if a loss is not finite, log it and continue.

    Args:
        parameters: of all encoders.
        loss_of_step: computes the loss.
        steps: number of steps.
        lr: rate, or the rate of a step.
        take: returns a dump.
        at: numbers of steps after which a dump is taken.
        plain: whether to use SGD with momentum in place of Adam.
    """
    rate = lr if callable(lr) else lambda _: lr
    optimiser: torch.optim.Optimizer = torch.optim.Adam(parameters, lr=rate(0))
    if plain:
        optimiser = torch.optim.SGD(parameters, lr=rate(0), momentum=0.9)
    trained = Trained()
    for step in range(steps):
        optimiser.param_groups[0]["lr"] = rate(step)
        loss = loss_of_step(step)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        trained.losses.append(float(loss.detach()))
        if step + 1 in at:
            with torch.no_grad():
                trained.taken[step + 1] = take()
    return trained
