"""Which of the logs that look alike have a fault, at any length and noise?"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lossscope
from tests.planted.base import Floats, log


@dataclass(frozen=True)
class Shape:
    """Length and relative noise of a log, and its random generator."""

    n: int
    noise: float
    rng: np.random.Generator

    @property
    def t(self) -> Floats:
        """Return time, from 0 to 1."""
        return np.arange(self.n) / self.n

    def falling(self, start: float = 4, end: float = 0.9, time: float = 0.15) -> Floats:
        """Return a falling loss."""
        return self.noisy(end + (start - end) * np.exp(-self.t / time))

    def noisy(self, loss: Any) -> Floats:
        noisy: Floats = loss * (1 + self.noise * self.rng.normal(size=self.n))
        return noisy


def healthy_queue(shape: Shape) -> dict[str, Any]:
    start, fill = shape.rng.uniform(0.3, 5), shape.rng.uniform(0.01, 0.1)
    later = np.maximum(shape.t - 3 * fill, 0)
    return {"loss": shape.noisy(start + 8 * (1 - np.exp(-shape.t / fill)) - 2 * (1 - np.exp(-3 * later)))}


def healthy_warm_restarts(shape: Shape) -> dict[str, Any]:
    """Return a loss that is higher where the rate is, at each restart."""
    rate = 0.5 * (1 + np.cos(np.pi * (3 * shape.t % 1)))
    return {"loss": shape.falling() * (1 + 0.25 * rate), "lr": 1e-3 * rate + 1e-6}


def healthy_raised_rate(shape: Shape) -> dict[str, Any]:
    return {"loss": shape.falling(), "lr": np.where(shape.t < 0.5, 1e-5, 1e-3)}


def healthy_lowered_rate(shape: Shape) -> dict[str, Any]:
    return {"loss": shape.falling(end=1.5) * np.where(shape.t < 0.5, 1, 0.6), "lr": np.where(shape.t < 0.5, 1e-3, 1e-4)}


def healthy_passing_a_margin(shape: Shape) -> dict[str, Any]:
    return {"loss": shape.falling(1.0, 0.1, 0.77), "objective": "triplet-sh:margin=0.3"}


def sick_seam(shape: Shape) -> dict[str, Any]:
    rate = 1e-3 * (1.001 - 2 * shape.t % 1)
    again = 0.9 + 2.4 * np.exp(-np.maximum(shape.t - 0.5, 0) / 0.2) * (shape.t >= 0.5)
    return {"loss": np.where(shape.t < 0.5, shape.falling(), shape.noisy(again)), "lr": rate}


def sick_diverged_flat(shape: Shape) -> dict[str, Any]:
    return {"loss": np.where(shape.t < 0.6, shape.falling(), shape.noisy(shape.rng.uniform(3.5, 12))), "lr": 1e-3}


def sick_diverged_burst(shape: Shape) -> dict[str, Any]:
    """Return a loss that explodes and settles at the loss of guessing."""
    burst = math.log(64) + 30 * np.exp(-np.maximum(shape.t - 0.5, 0) * 80)
    return {"loss": np.where(shape.t < 0.5, shape.falling(math.log(64)), burst * (1 + 0.001 * shape.rng.normal()))}


def sick_diverged_climb(shape: Shape) -> dict[str, Any]:
    return {"loss": shape.falling() * (1 + 4 * (1 - np.exp(-8 * np.maximum(shape.t - 0.5, 0))))}


def sick_margin_plateau(shape: Shape) -> dict[str, Any]:
    noise = 0.3 * 0.3 * shape.noise * np.abs(shape.rng.normal(size=shape.n))
    return {"loss": 0.3 + 3 * np.exp(-shape.t / 0.08) + noise, "objective": "triplet-sh:margin=0.3"}


def sick_zero_loss(shape: Shape) -> dict[str, Any]:
    return {"loss": np.where(shape.rng.random(shape.n) < 0.8, 0, shape.rng.random(shape.n))}


SHAPES = list(itertools.product((100, 1000), (0.005, 0.03, 0.1)))
KINDS: tuple[tuple[Callable[[Shape], dict[str, Any]], tuple[str, ...]], ...] = (
    (healthy_queue, ()),
    (healthy_warm_restarts, ()),
    (healthy_raised_rate, ()),
    (healthy_lowered_rate, ()),
    (healthy_passing_a_margin, ()),
    (sick_seam, ("seam",)),
    (sick_diverged_flat, ("diverged",)),
    (sick_diverged_burst, ("diverged",)),
    (sick_diverged_climb, ("diverged",)),
    (sick_margin_plateau, ("margin-plateau",)),
    (sick_zero_loss, ("zero-loss",)),
)


@pytest.mark.parametrize(("make", "ids"), KINDS, ids=[make.__name__ for make, _ in KINDS])
def test_kinds_are_told_apart(make: Callable[[Shape], dict[str, Any]], ids: tuple[str, ...], tmp_path: Path) -> None:
    for n, noise in SHAPES:
        made = make(Shape(n, noise, np.random.default_rng([n, int(1000 * noise)])))
        columns = {name: made[name] for name in ("loss", "lr") if name in made}
        options = {"objective": made["objective"]} if "objective" in made else {}
        found = lossscope.doctor(log=log(tmp_path, **columns), **options)
        assert tuple(finding.id for finding in found.findings if finding.is_alarm) == ids, (n, noise)
