"""Retrieve among many documents that no query asks for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from .base import Item
from .pairs import Pairs, Setup, items_of

KIND = "corpus with distractors"
HEALTHY = (
    Setup("small", n=300, distractors=3000, batch=64, seed=1),
    Setup("wide", n=400, d=384, distractors=4000, batch=128, seed=2, noise=0.2),
    Setup("noisy", n=500, d=128, distractors=4500, batch=128, seed=3, noise=0.6),
    Setup("topics", n=600, d=96, distractors=2400, batch=96, seed=4, groups=40, rank=48),
)
_SICK = Setup("", n=400, d=96, distractors=3000, batch=64, seed=11, groups=30, rank=48)
SICK = (
    replace(_SICK, name="shifted rows", order="shifted", planted=("misaligned-pairs",)),
    replace(_SICK, name="shuffled in topics", order="groups", planted=("order-lost",)),
    replace(_SICK, name="a sixth wrong", order="share", planted=("shuffled-share",)),
    replace(_SICK, name="two loaders", two_loaders=True, planted=("no-learning", "complete-collapse")),
    replace(_SICK, name="hardest negative at once", hardest=True, noise=1.5, lr=0.02, planted=("complete-collapse",)),
    replace(_SICK, name="documents not read", constant=True, planted=("dead-tower",)),
    replace(_SICK, name="tau 2", tau=2.0, planted=("temperature-too-high",)),
    replace(_SICK, name="rank 2", bottleneck=2, planted=("dimensional-collapse",)),
)


def items(shift: int = 0) -> Iterator[Item]:
    """Yield all items.

    Args:
        shift: added to every seed.
    """
    for setup in (*HEALTHY, *SICK):
        setup = replace(setup, seed=setup.seed + shift)
        pairs = Pairs(setup)
        trained = pairs.train(pairs.softmax)
        options = {"objective": f"ntxent:tau={setup.tau:g}", "batch_size": setup.batch}
        yield from items_of(KIND, setup, trained, options, ("end",) if setup.planted else ("middle", "end", "log"))
    yield _crawled_twice(shift)


def _crawled_twice(shift: int) -> Item:
    """Return an item whose corpus has each third document eight times, under other ids; a copy is no positive."""
    setup = replace(_SICK, name="crawled twice", distractors=1000, seed=12 + shift)
    pairs = Pairs(setup)
    arrays = dict(pairs.train(pairs.softmax).taken[setup.steps])
    copied = np.arange(0, setup.n, 3)
    arrays["documents"] = np.concatenate([arrays["documents"], *[arrays["documents"][copied]] * 7])
    owners = np.concatenate([np.arange(setup.n), *[copied] * 7])
    queries = np.concatenate([np.arange(setup.n), np.arange(setup.n, setup.n + 7 * len(copied))])
    arrays["queries"] = np.concatenate([arrays["queries"], arrays["queries"][owners[setup.n :]]])
    rows = np.concatenate([np.arange(setup.n), np.arange(setup.n + 1000, setup.n + 1000 + 7 * len(copied))])
    arrays["positives"] = np.stack([queries, rows], 1)
    options = {"objective": "ntxent:tau=0.1", "batch_size": setup.batch}
    return Item(KIND, setup.name, ("duplicates",), (arrays,), None, options, setup.batch, setup.seed)
