"""Train with negatives that an earlier model mined: B (1 + k) candidates a query."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from .base import Arrays, Item
from .pairs import Pairs, Setup, items_of
from .world import unit

KIND = "mined negatives"
HEALTHY = (
    (Setup("one a query", n=500, d=64, batch=32, seed=1, tau=0.05), 1),
    (Setup("four a query", n=600, d=128, batch=32, seed=2, tau=0.05, groups=60, rank=48), 4),
    (Setup("seven a query", n=400, d=256, batch=16, seed=3, tau=0.07, noise=0.4), 7),
    (Setup("topics", n=800, d=96, batch=64, seed=4, tau=0.05, groups=50, rank=64, noise=0.2), 2),
)
_SICK = Setup("", n=500, d=96, batch=32, seed=11, tau=0.05, groups=50, rank=48)
SICK = (
    replace(_SICK, name="positives among the negatives", planted=("positive-as-negative",)),
    replace(_SICK, name="answers without a label", planted=("hard-negatives-too-hard",)),
    replace(_SICK, name="two loaders", two_loaders=True, planted=("no-learning", "complete-collapse")),
    replace(_SICK, name="shifted rows", order="shifted", planted=("misaligned-pairs",)),
    replace(_SICK, name="shuffled in topics", order="groups", planted=("order-lost",)),
    replace(_SICK, name="a sixth wrong", order="share", planted=("shuffled-share",)),
    replace(_SICK, name="tau 2", tau=2.0, planted=("temperature-too-high",)),
    replace(_SICK, name="hardest negative at once", hardest=True, noise=1.5, lr=0.02, planted=("complete-collapse",)),
)


def items(shift: int = 0) -> Iterator[Item]:
    """Yield dumps with their mined negatives, and logs.

    Args:
        shift: added to every seed.
    """
    for setup, k in (*HEALTHY, *((setup, 3) for setup in SICK)):
        setup = replace(setup, seed=setup.seed + shift)
        pairs = Pairs(setup)
        negatives = _mine(pairs, np.arange(pairs.trained_pairs), k)

        def loss(_: int, pairs: Pairs = pairs, negatives: np.ndarray = negatives) -> Tensor:
            rows = pairs.draw()
            x, y = pairs.encode(rows)
            mined = unit(pairs.g(pairs.Y[negatives[rows].ravel()]))
            return cross_entropy(x @ torch.cat([y, mined]).T / pairs.setup.tau, torch.arange(len(x)))

        def take(pairs: Pairs = pairs, k: int = k) -> Arrays:
            return _with_negatives(pairs, k)

        trained = pairs.train(loss, take)
        options = {"objective": f"ntxent:tau={setup.tau:g}", "batch_size": setup.batch}
        parts: tuple[str, ...] = ("end",) if setup.planted else ("middle", "end", "log")
        parts = ("end", "log") if setup.two_loaders else parts
        yield from items_of(KIND, setup, trained, options, parts, {"batch_size": setup.batch})


def _mine(pairs: Pairs, rows: np.ndarray, k: int) -> np.ndarray:
    """Return k of the ranks 10 to 60 of each row, by an earlier model that found half of the latent."""
    x = pairs.X[rows] + 0.5 * torch.from_numpy(pairs.rng.normal(size=pairs.X[rows].shape)).float()
    S = unit(x) @ unit(pairs.X[rows]).T
    S.fill_diagonal_(-torch.inf)
    ranks = S.topk(60, dim=1).indices.numpy()[:, 10:]
    chosen = np.stack([pairs.rng.choice(50, k, replace=False) for _ in rows])
    mined: np.ndarray = rows[np.take_along_axis(ranks, chosen, 1)]
    return mined


def _with_negatives(pairs: Pairs, k: int) -> Arrays:
    """Return the dump with its mined negatives, as rows of the documents."""
    setup, arrays = pairs.setup, pairs.dump()
    n = setup.n
    column = np.argsort(pairs.candidates)  # of each item among the documents
    negatives = column[_mine(pairs, pairs.evaluated, k) - pairs.trained_pairs]
    is_positive = negatives == np.arange(n)[:, None]
    negatives[is_positive] = ((np.arange(n) + n // 2) % n)[np.where(is_positive)[0]]
    arrays["positives"] = np.stack([np.arange(n)] * 2, 1)
    if setup.planted == ("positive-as-negative",):
        rows = pairs.rng.choice(n, n // 10, replace=False)
        negatives[rows, 0] = rows
    if setup.planted == ("hard-negatives-too-hard",):  # another paragraph that answers the query better
        noise = 0.2 * torch.from_numpy(pairs.rng.normal(size=(n, setup.d))).float().numpy()
        better = arrays["queries"] + noise / np.sqrt(setup.d)
        better /= np.linalg.norm(better, axis=1, keepdims=True)
        arrays["documents"] = np.concatenate([arrays["documents"], better.astype(np.float32)])
        negatives[:, 0] = n + np.arange(n)
    arrays["negatives"] = negatives
    return arrays
