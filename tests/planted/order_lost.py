"""Pairs shuffled within topics, and matrices whose columns and rows differ in order."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .base import Case, Floats, Size, dump, pairs, unit


def _topics(size: Size) -> tuple[Floats, Floats, Floats]:
    """Return both sides of a model that works, and the topic of each pair: about 30 pairs have one."""
    rng = size.rng
    topics = rng.integers(0, max(size.n // 30, 2), size.n)
    items = 1.5 * rng.normal(size=(topics.max() + 1, size.d))[topics] + rng.normal(size=(size.n, size.d))
    return *(unit(items + 0.25 * rng.normal(size=items.shape)) for _ in range(2)), topics  # type: ignore[return-value]


def _within(size: Size, groups: Floats) -> Floats:
    """Return an order that moves rows within groups alone."""
    order = np.arange(len(groups))
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)
        order[rows] = size.rng.permutation(rows)
    return order


def within_topics(size: Size, folder: Path) -> Case:
    first, second, topics = _topics(size)
    return Case((pairs(folder, first, second[_within(size, topics)]),))


def of_a_matrix(size: Size, folder: Path) -> Case:
    first, second, topics = _topics(size)
    return Case((dump(folder, similarity=first @ second[_within(size, topics)].T),))


def of_a_whole_matrix(size: Size, folder: Path) -> Case:
    first, second, _ = _topics(size)
    return Case((dump(folder, similarity=first @ second[size.rng.permutation(size.n)].T),))


SICK = (within_topics, of_a_matrix, of_a_whole_matrix)


def healthy(size: Size, folder: Path) -> Case:
    """The same model with the right pairs."""
    first, second, _ = _topics(size)
    return Case((pairs(folder, first, second, name="healthy.npz"),))
