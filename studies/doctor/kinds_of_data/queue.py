"""Train with a queue of earlier keys (MoCo) of a momentum encoder; the loss rises while the queue fills."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from .base import Item
from .pairs import Pairs, Setup, items_of
from .world import Trained, train, unit

KIND = "queue"
_Q: dict[str, Any] = {"shared": True, "lr": 1e-3, "steps": 320}
HEALTHY = (
    (Setup("queue 1024", n=500, d=64, batch=64, seed=1, tau=0.1, **_Q), 1024),
    (Setup("queue 2048", n=800, d=128, batch=128, seed=2, tau=0.07, noise=0.4, **_Q), 2048),
    (Setup("queue 512", n=400, d=32, batch=32, seed=3, tau=0.2, **_Q), 512),
    (Setup("queue 4096", n=600, d=128, batch=256, seed=4, tau=0.2, **_Q), 4096),
)
_SICK = Setup("", n=500, d=96, batch=64, seed=11, tau=0.1, **_Q)
SICK = (
    (replace(_SICK, name="two loaders", two_loaders=True, planted=("no-learning",)), ("log",)),
    (
        replace(
            _SICK,
            name="views told apart by nothing",
            two_loaders=True,
            steps=600,
            lr=5e-3,
            seed=12,
            planted=("complete-collapse", "no-learning"),
        ),
        ("end",),
    ),
    (replace(_SICK, name="tau 3", tau=3.0, planted=("temperature-too-high",)), ("end",)),
    (replace(_SICK, name="a sixth wrong", order="share", planted=("shuffled-share",)), ("end",)),
    (replace(_SICK, name="keys shifted", order="shifted", planted=("misaligned-pairs",)), ("end",)),
    (replace(_SICK, name="projector of 2 units", bottleneck=2, planted=("dimensional-collapse",)), ("end",)),
    (replace(_SICK, name="rate jumps", planted=("diverged", "seam")), ("log",)),
)


def items(shift: int = 0) -> Iterator[Item]:
    """Yield dumps of queries and momentum keys, and logs.

    Args:
        shift: added to every seed.
    """
    for setup, keys in (*HEALTHY, *((setup, 1024) for setup, _ in SICK)):
        parts = dict(SICK).get(setup, ("middle", "end", "log"))
        setup = replace(setup, seed=setup.seed + shift)
        trained = train_with_queue(setup, keys)
        options = {"objective": f"ntxent:tau={setup.tau:g}", "batch_size": setup.batch}
        for item in items_of(KIND, setup, trained, options, parts, {}):
            filled = keys // setup.batch + 1  # from this step on the loss can be compared with its end
            yield item if setup.planted else replace(item, losses=item.losses[filled:])


def train_with_queue(setup: Setup, keys: int, momentum: float = 0.95) -> Trained:
    """Train queries against their keys and the keys of a queue that begins empty."""
    pairs = Pairs(setup)
    pairs.g = copy.deepcopy(pairs.f)
    parameters = list(pairs.f.parameters())
    queue = torch.zeros(0, setup.d)

    def loss(step: int) -> Tensor:
        nonlocal queue
        rows = pairs.draw()
        query = unit(pairs.f(pairs.X[rows]))
        with torch.no_grad():
            _follow(pairs.g, pairs.f, momentum)
            others = pairs.rng.permutation(rows) if setup.two_loaders else rows
            key = unit(pairs.g(pairs.Y[pairs.partner[others]]))
        S = torch.cat([(query * key).sum(1, keepdim=True), query @ queue.T], 1) if len(queue) else query @ key.T
        target = torch.zeros(len(S), dtype=torch.long) if len(queue) else torch.arange(len(S))
        queue = torch.cat([key, queue])[:keys]
        return cross_entropy(S / setup.tau, target)

    jump = (lambda step: setup.lr if step < setup.steps // 2 else 3.0) if setup.name == "rate jumps" else setup.lr
    return train(parameters, loss, setup.steps, jump, pairs.dump, (setup.steps // 2, setup.steps), setup.plain)


def _follow(slow: nn.Module, fast: nn.Module, momentum: float) -> None:
    for mine, other in zip(slow.parameters(), fast.parameters(), strict=True):
        mine.mul_(momentum).add_((1 - momentum) * other)
