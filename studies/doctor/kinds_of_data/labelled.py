"""Train a labelled set: batches of P classes with K items, losses of all positives or of the hardest positive."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from .base import Arrays, Item, csv_log
from .world import encoder, look, train, unit

KIND = "labelled set"


@dataclass(frozen=True)
class Setup:
    """How a labelled set is drawn and trained; the lower half are faults."""

    name: str
    loss: str = "supcon"  # supcon, multi-similarity, batch-hard
    classes: int = 100
    items: int = 10  # of a class, half of which are evaluated
    d: int = 64
    per_batch: int = 16  # classes of a batch
    seed: int = 0
    noise: float = 0.3
    within: float = 0.6  # deviation of the latents of a class
    steps: int = 240
    lr: float = 1e-3
    tau: float = 0.1
    margin: float = 0.2
    labels: str = "right"  # in the dump: right, share; in training, too: random
    bottleneck: int = 0
    wrong_axis: bool = False
    planted: tuple[str, ...] = ()


K = 4
HEALTHY = (
    Setup("supcon", d=64, seed=1),
    Setup("supcon, many classes", classes=400, items=8, d=128, per_batch=32, seed=2, tau=0.2),
    Setup("multi-similarity", loss="multi-similarity", d=256, seed=3, noise=0.5),
    Setup("multi-similarity, small", loss="multi-similarity", classes=60, items=12, d=32, per_batch=8, seed=4),
    Setup("hardest positive", loss="batch-hard", classes=150, d=96, seed=5),
    Setup("hardest positive, few classes", loss="batch-hard", classes=40, items=16, d=48, per_batch=12, seed=6),
)
_SICK = Setup("", classes=120, d=96, seed=11)
_HARD = replace(_SICK, loss="batch-hard", lr=0.02, noise=1.0, within=1.5)
SICK = (
    (replace(_SICK, name="labels at random", labels="random", planted=("no-learning",)), ("end",)),
    (replace(_SICK, name="a sixth of the labels wrong", labels="share", planted=("shuffled-share",)), ("end",)),
    (replace(_HARD, name="hardest pairs at once", planted=("complete-collapse", "margin-plateau")), ("end",)),
    (replace(_HARD, name="hardest pairs at once", planted=("margin-plateau",)), ("log",)),
    (replace(_HARD, name="large margin", margin=0.5, seed=12, planted=("complete-collapse", "margin-plateau")),
     ("end",)),
    (replace(_HARD, name="large margin", margin=0.5, seed=12, planted=("margin-plateau",)), ("log",)),
    (replace(_SICK, name="tau 3", tau=3.0, planted=("temperature-too-high",)), ("end",)),
    (replace(_SICK, name="rank 2", bottleneck=2, planted=("dimensional-collapse",)), ("end",)),
    (replace(_SICK, name="normalised over the batch", wrong_axis=True, planted=("normalised-over-wrong-axis",)),
     ("end",)),
    (replace(_SICK, name="margins of distances", loss="contrastive", planted=("zero-loss",)), ("log",)),
)  # fmt: skip


def items(shift: int = 0) -> Iterator[Item]:
    """Yield dumps at half of the steps and at the end, and logs.

    Args:
        shift: added to every seed.
    """
    for setup in HEALTHY:
        yield from _items_of(replace(setup, seed=setup.seed + shift), ("middle", "end", "log"))
    for setup, parts in SICK:
        yield from _items_of(replace(setup, seed=setup.seed + shift), parts)


def _items_of(setup: Setup, parts: tuple[str, ...]) -> Iterator[Item]:
    torch.manual_seed(setup.seed)
    rng = np.random.default_rng([setup.seed, setup.classes, setup.d])
    labels = np.repeat(np.arange(setup.classes), setup.items)
    centres = rng.normal(size=(setup.classes, 24))
    z = centres[labels] + setup.within * rng.normal(size=(len(labels), 24))
    X, f = look(torch.from_numpy(z).float(), setup.noise, 0, setup.seed), encoder(setup.d, setup.bottleneck)
    stated = rng.permutation(labels) if setup.labels == "random" else labels.copy()
    if setup.labels == "share":
        wrong = rng.random(len(labels)) < 0.15
        stated[wrong] = rng.permutation(stated[wrong])
    is_trained = np.arange(len(labels)) % 2 == 0
    rows_of_class = [np.flatnonzero((stated == label) & is_trained) for label in range(setup.classes)]
    able = [rows for rows in rows_of_class if len(rows) >= K]

    def embed(x: Tensor) -> Tensor:
        return normalize(f(x), dim=0) if setup.wrong_axis else unit(f(x))

    def loss(_: int) -> Tensor:
        chosen = rng.choice(len(able), setup.per_batch, replace=False)
        rows = np.concatenate([rng.choice(able[label], K, replace=False) for label in chosen])
        return LOSSES[setup.loss](embed(X[rows]), torch.from_numpy(stated[rows]), setup)

    def take() -> Arrays:
        return {"embeddings": embed(X[~is_trained]).numpy(), "labels": stated[~is_trained]}

    half, end = setup.steps // 2, setup.steps
    trained = train(list(f.parameters()), loss, setup.steps, setup.lr, take, (half, end))
    spec = {
        "supcon": f"supcon:tau={setup.tau:g}",
        "multi-similarity": "multi-similarity",
        "batch-hard": f"triplet-sh:margin={setup.margin:g}",
        "contrastive": None,
    }[setup.loss]
    batch = K * setup.per_batch
    options = {"batch_size": batch} | ({"objective": spec} if spec else {})
    common: dict[str, Any] = {
        "kind": KIND,
        "planted": setup.planted,
        "batch": batch,
        "seed": setup.seed,
        "options": options,
    }
    for part, step in (("middle", half), ("end", end)):
        if part in parts:
            losses = trained.losses[:step]
            yield Item(name=f"{setup.name}/{part}", dumps=(trained.taken[step],), losses=losses, **common)
    if "log" in parts:
        log = csv_log(loss=trained.losses)
        yield Item(name=f"{setup.name}/log", log=log, losses=trained.losses, **common)


def _masks(labels: Tensor) -> tuple[Tensor, Tensor]:
    """Return masks of positives, without pairs of an item with itself, and of negatives."""
    same = labels[:, None] == labels[None, :]
    return same & ~torch.eye(len(labels), dtype=torch.bool), ~same


def supcon(x: Tensor, labels: Tensor, setup: Setup) -> Tensor:
    """Return the mean over positives of −log of the softmax over all others (Khosla et al. 2020, L_out)."""
    positive, negative = _masks(labels)
    S = (x @ x.T / setup.tau).masked_fill(~(positive | negative), -torch.inf)
    log_p = (S - S.logsumexp(1, keepdim=True)).masked_fill(~positive, 0.0)
    return -(log_p.sum(1) / positive.sum(1)).mean()


def multi_similarity(x: Tensor, labels: Tensor, _: Setup) -> Tensor:
    """Return the loss of Wang et al. 2019 over all pairs, with alpha 2, beta 50 and lambda 0.5."""
    positive, negative = _masks(labels)
    S = x @ x.T - 0.5
    near = torch.log1p((-2 * S).exp().masked_fill(~positive, 0.0).sum(1)) / 2
    far = torch.log1p((50 * S).exp().masked_fill(~negative, 0.0).sum(1)) / 50
    return (near + far).mean()


def batch_hard(x: Tensor, labels: Tensor, setup: Setup) -> Tensor:
    """Return the triplet loss of the hardest positive and the hardest negative (Hermans et al. 2017), of cosines."""
    positive, negative = _masks(labels)
    S = x @ x.T
    hardest_positive = S.masked_fill(~positive, torch.inf).amin(1)
    hardest_negative = S.masked_fill(~negative, -torch.inf).amax(1)
    return (setup.margin + hardest_negative - hardest_positive).relu().mean()


def contrastive_of_distances(x: Tensor, labels: Tensor, _: Setup) -> Tensor:
    """Return a contrastive loss of cosines with margins meant for distances: each pair meets them."""
    positive, negative = _masks(labels)
    S = x @ x.T
    return (0 - S).relu()[positive].mean() + (S - 1).relu()[negative].mean()


LOSSES: dict[str, Callable[[Tensor, Tensor, Setup], Tensor]] = {
    "supcon": supcon,
    "multi-similarity": multi_similarity,
    "batch-hard": batch_hard,
    "contrastive": contrastive_of_distances,
}
