"""Train two views of a set (SimCLR): each view is a query among the 2B − 1 others of its batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from .base import Arrays, Item
from .pairs import Pairs, Setup, items_of

KIND = "two views of one set"
HEALTHY = (
    Setup("small batches", n=400, d=32, batch=16, seed=1, tau=0.2, steps=400),
    Setup("usual", n=800, d=128, batch=128, seed=2, tau=0.5),
    Setup("low tau", n=600, d=64, batch=256, seed=3, tau=0.07, noise=0.5, steps=160),
    Setup("weak augmentation", n=500, d=256, batch=64, seed=4, tau=0.1, noise=0.15),
)
_SICK = Setup("", n=500, d=96, batch=64, seed=11, tau=0.1)
SICK = (
    replace(_SICK, name="two loaders", two_loaders=True, planted=("no-learning",)),
    replace(_SICK, name="two loaders, large", two_loaders=True, batch=256, steps=120, planted=("no-learning",)),
    replace(_SICK, name="second view shifted", order="shifted", planted=("misaligned-pairs",)),
    replace(_SICK, name="a sixth wrong", order="share", planted=("shuffled-share",)),
    replace(_SICK, name="hardest negative at once", hardest=True, noise=1.5, lr=0.02, planted=("complete-collapse",)),
    replace(_SICK, name="one augmentation twice", noise=0.0, planted=("identical-views",)),
    replace(_SICK, name="tau 3", tau=3.0, planted=("temperature-too-high",)),
    replace(_SICK, name="projector of 2 units", bottleneck=2, planted=("dimensional-collapse",)),
)


def _loss(pairs: Pairs) -> Callable[[int], Tensor]:
    """Return a function that computes the loss of a fresh batch of both views."""
    return lambda _: nt_xent(*pairs.encode(pairs.draw()), pairs.setup.tau)


def nt_xent(x: Tensor, y: Tensor, tau: float) -> Tensor:
    """Return the mean over 2B views of −log of the softmax over all others."""
    both = torch.cat([x, y])
    S = (both @ both.T / tau).masked_fill(torch.eye(len(both), dtype=torch.bool), -torch.inf)
    return cross_entropy(S, torch.arange(len(both)).roll(len(x)))


def items(shift: int = 0) -> Iterator[Item]:
    """Yield dumps as two sides and as a labelled set, and logs with and without options of the training.

    Args:
        shift: added to every seed.
    """
    for setup in (*HEALTHY, *SICK):
        setup = replace(setup, shared=True, seed=setup.seed + shift)
        pairs = Pairs(setup)
        trained = pairs.train(_loss(pairs))
        options = {"objective": f"ntxent:tau={setup.tau:g}", "batch_size": setup.batch}
        parts = ("end",) if setup.planted else ("middle", "end", "log")
        if setup.planted == ("no-learning",):
            parts = ("log",)  # untrained encoders find views anyway, so a dump shows no fault
        log_options = {"batch_size": setup.batch}
        yield from items_of(KIND, setup, trained, options, parts, log_options)
        labelled = _labelled(trained.taken[setup.steps])
        options = {"objective": f"supcon:tau={setup.tau:g}", "batch_size": 2 * setup.batch}
        planted = setup.planted
        if not {"misaligned-pairs", "no-learning"} & {*setup.planted}:  # the doctor checks no order of a labelled set
            name, losses = f"{setup.name}/one set", () if setup.planted else trained.losses
            yield Item(KIND, name, planted, (labelled,), None, options, 2 * setup.batch, setup.seed, losses)


def _labelled(arrays: Arrays) -> Arrays:
    """Return both views as one set whose labels are the items."""
    n = len(arrays["queries"])
    rows = np.concatenate([arrays["queries"], arrays["documents"]])
    return {"embeddings": rows, "labels": np.concatenate([np.arange(n)] * 2)}
