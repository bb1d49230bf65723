"""Batches of P classes with K items each, as loaders of metric learning make them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from .shuffles import random_words
from .types import Rows

_ITEMS, _GROUPS = 3 << 32, 4 << 32  # streams of random words; others draw captions and offline candidates

Group = tuple[int, Rows]  # a class, and rows of some of its items


def class_rounds(labels: Rows, per_class: int, seed: int | None, epoch: int) -> list[list[Group]]:
    """Cut each class into groups of K items; round r has the r-th group of every class that has one.

    The items of a class are shuffled, and the groups of a round. A class's last group may have fewer items, at least
    2; an item that is left alone has no positive and is left out.

    Args:
        labels: (N,) class of each item.
        per_class: K.
        seed: of the order; None: in file order.
        epoch: from 0.
    """
    n = len(labels)
    words = np.arange(n, dtype=np.uint64) if seed is None else random_words(n, seed, _ITEMS + epoch)
    order = np.lexsort((words, labels)).astype(np.int64)
    rounds: list[list[Group]] = []
    for members in np.split(order, np.flatnonzero(np.diff(labels[order])) + 1) if n else ():
        for number, start in enumerate(range(0, len(members), per_class)):
            group = members[start : start + per_class]
            if len(group) > 1:
                if number == len(rounds):
                    rounds.append([])
                rounds[number].append((int(labels[group[0]]), group))
    if seed is None:
        return rounds
    keys = random_words(sum(map(len, rounds)), seed, _GROUPS + epoch)
    ends = np.cumsum([len(groups) for groups in rounds]).tolist()
    return [
        [groups[index] for index in np.argsort(keys[end - len(groups) : end], kind="stable")]
        for groups, end in zip(rounds, ends, strict=True)
    ]


def fill_batches(rounds: Sequence[list[Group]], classes: int, drop_last: bool) -> Iterator[Rows]:
    """Yield the rows of batches of P groups of different classes, round by round.

    A batch has fewer groups where fewer classes are left; one of a single class has no negatives and is left out.

    Args:
        rounds: of `class_rounds`.
        classes: P.
        drop_last: leave out batches with fewer groups.
    """
    least = classes if drop_last else 2
    waiting: list[Group] = []  # of different classes, fewer than P
    for groups in rounds:
        begun = {label for label, _ in waiting}
        fresh = [group for group in groups if group[0] not in begun]
        again = [group for group in groups if group[0] in begun]
        batch, rest = [*waiting, *fresh][:classes], [*waiting, *fresh][classes:]
        if len(batch) < classes and not again:
            waiting = batch
            continue
        queue = [*rest, *again]
        cut = [batch, *(queue[start : start + classes] for start in range(0, len(queue), classes))]
        waiting = cut.pop() if len(cut[-1]) < classes and len(cut) > 1 else []
        yield from (_rows(part) for part in cut if len(part) >= least)
    if len(waiting) >= least:
        yield _rows(waiting)


def _rows(groups: Sequence[Group]) -> Rows:
    return np.concatenate([rows for _, rows in groups])
