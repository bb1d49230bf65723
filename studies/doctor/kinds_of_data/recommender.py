"""Train towers of ids (recommenders): rows of tables, products without norms, many positives, popular items."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from .base import Arrays, Item, csv_log
from .world import train

KIND = "towers of ids"


@dataclass(frozen=True)
class Setup:
    """The options of interactions and of their training; the lower half are faults."""

    name: str
    users: int = 800
    goods: int = 1500
    d: int = 32
    batch: int = 128
    seed: int = 0
    per_user: int = 12
    popularity: float = 0.8  # power of the popularity of items over their rank
    taste: float = 2.5  # factor of a user's taste beside popularity
    steps: int = 500
    lr: float = 0.02
    decay: float = 0.0  # weight of the squares of all entries
    order: str = "right"  # of the items in the dump: right, shifted, share
    frozen: bool = False  # whether the items are detached, and begin at the same vector
    scale: float = 1.0  # of the products in the loss
    planted: tuple[str, ...] = ()


HEALTHY = (
    Setup("usual", seed=1),
    Setup("uniform items", seed=2, popularity=0.0, d=64),
    Setup("very popular items", seed=3, popularity=1.2, per_user=20, users=500),
    Setup("large batch", seed=4, batch=512, users=1500, goods=2500, d=48, steps=300),
    Setup("small batch", seed=5, batch=32, steps=900, d=16, users=400, goods=600),
)
_SICK = Setup("", seed=11, popularity=0.4)
SICK = (
    (replace(_SICK, name="ids off by one", order="shifted", planted=("misaligned-pairs",)), ("end",)),
    (replace(_SICK, name="a quarter of the items wrong", order="share", planted=("shuffled-share",)), ("end",)),
    (replace(_SICK, name="weight decay", decay=100.0, planted=("no-learning", "complete-collapse")), ("end",)),
    (replace(_SICK, name="items detached", frozen=True, planted=("dead-tower",)), ("end",)),
    (
        replace(_SICK, name="trained on permuted items", order="random", planted=("misaligned-pairs", "no-learning")),
        ("end",),
    ),
    (replace(_SICK, name="lr 1e-7", lr=1e-7, planted=("no-learning",)), ("end", "log")),
    (replace(_SICK, name="lr 1e20", lr=1e20, planted=("non-finite",)), ("end", "log")),
    (replace(_SICK, name="lr 30 from the middle", lr=-30.0, planted=("diverged", "seam")), ("log",)),
)


def items(shift: int = 0) -> Iterator[Item]:
    """Yield dumps of raw rows, and logs.

    Args:
        shift: added to every seed.
    """
    for setup in HEALTHY:
        yield from _items_of(replace(setup, seed=setup.seed + shift), ("middle", "end", "log"))
    for setup, parts in SICK:
        yield from _items_of(replace(setup, seed=setup.seed + shift), parts)


def interactions(setup: Setup, rng: np.random.Generator) -> np.ndarray:
    """Return (n, 2) user and item: each user draws items by taste and popularity."""
    tastes, kinds = rng.normal(size=(setup.users, 8)), rng.normal(size=(setup.goods, 8))
    popular = -setup.popularity * np.log(1 + np.arange(setup.goods))
    scores = setup.taste * tastes @ kinds.T / np.sqrt(8) * 1.5 + popular
    scores += rng.gumbel(size=scores.shape)
    chosen = np.argsort(-scores, axis=1)[:, : setup.per_user]
    return np.stack([np.repeat(np.arange(setup.users), setup.per_user), chosen.ravel()], 1)


def _items_of(setup: Setup, parts: tuple[str, ...]) -> Iterator[Item]:
    torch.manual_seed(setup.seed)
    rng = np.random.default_rng([setup.seed, setup.users, setup.d])
    pairs = interactions(setup, rng)
    counts = np.bincount(pairs[:, 1], minlength=setup.goods)
    seen = np.flatnonzero(counts)  # items that were bought
    pairs[:, 1] = np.searchsorted(seen, pairs[:, 1])
    correction = torch.from_numpy(np.log(counts[seen] / len(pairs))).float()
    stated = pairs.copy()
    if setup.order == "random":
        stated[:, 1] = rng.permutation(stated[:, 1])
    P = (0.1 * torch.randn(setup.users, setup.d)).requires_grad_()
    Q = (0.1 * torch.randn(len(seen), setup.d)).requires_grad_(not setup.frozen)
    if setup.frozen:
        Q = torch.ones(len(seen), setup.d)

    def loss(_: int) -> Tensor:
        rows = stated[rng.choice(len(stated), setup.batch, replace=False)]
        user, good = torch.from_numpy(rows[:, 0]), torch.from_numpy(rows[:, 1])
        S = setup.scale * P[user] @ Q[good].T - correction[good]
        S = S.masked_fill((good[:, None] == good[None, :]) & ~torch.eye(len(S), dtype=torch.bool), -torch.inf)
        penalty = setup.decay * (P[user].square().sum(1).mean() + Q[good].square().sum(1).mean())
        return cross_entropy(S, torch.arange(len(S))) + penalty

    def take() -> Arrays:
        written = stated.copy()
        if setup.order == "shifted":
            written[:, 1] = (written[:, 1] + 1) % len(seen)
        if setup.order == "share":
            wrong = rng.random(len(written)) < 0.25
            written[wrong, 1] = rng.permutation(written[wrong, 1])
            written = np.unique(written, axis=0)
        if setup.order == "random":
            written = pairs
        users, goods = P.detach().numpy().copy(), Q.detach().numpy().copy()
        return {"users": users, "items": goods, "positives": written, "sides": np.array(["user", "item"])}

    half, end = setup.steps // 2, setup.steps
    rate = (lambda step: 0.02 if step < half else 30.0) if setup.lr < 0 else setup.lr
    learnt = [P] if setup.frozen else [P, Q]
    trained = train(learnt, loss, setup.steps, rate, take, (half, end))
    common: dict[str, Any] = {"kind": KIND, "planted": setup.planted, "batch": setup.batch, "seed": setup.seed}
    for part, step in (("middle", half), ("end", end)):
        if part in parts:
            losses = trained.losses[:step]
            yield Item(name=f"{setup.name}/{part}", dumps=(trained.taken[step],), losses=losses, **common)
    if "log" in parts:
        log, options = csv_log(loss=trained.losses), {"batch_size": setup.batch}
        yield Item(name=f"{setup.name}/log", log=log, losses=trained.losses, options=options, **common)
