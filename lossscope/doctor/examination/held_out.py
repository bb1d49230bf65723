"""What a source shares with training data, and how recall on both compares."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.types import Rows
from lossscope.core.unit_vectors import unit_rows
from lossscope.sources.base import load

from ..parts.alignment import LEAST, align, choose_pairs
from ..parts.splits import SharedItems, Splits, near_rows
from ..types import NotChecked
from .options import Options

_MOST = 8192  # held-out items that are compared
_MOST_PAIRS = 1000


def shared_with(split: SplitEmbeddings, options: Options) -> Splits:
    """Return what a split shares with the sources of `--against`, by their embeddings.

    Args:
        split: the held-out one.
        options: with the other sources.
    """
    shared = []
    for target in options.against:
        train = load(target, **options.request("train"))
        shared += shared_by_embedding(train, split, target)
    if not shared:
        raise NotChecked("the other sources have no embeddings to compare")
    return Splits(tuple(shared))


def shared_by_embedding(train: SplitEmbeddings, held_out: SplitEmbeddings, name: str) -> list[SharedItems]:
    """Return which held-out items of the first side have nearly the embedding of a training item.

    The second side is left out: equal captions of different images, and documents that answer several queries, are in
    both splits of sound data.
    """
    first, second = held_out.images, train.images
    if first is None or second is None or first.shape[1] != second.shape[1]:
        return []
    (own, rows), (theirs, _) = _unit(first, _MOST), _unit(second, None)
    if min(len(own), len(theirs)) < LEAST:
        return []
    near, usual = near_rows(own, theirs)
    side, split = held_out.relations.sides.first, held_out.split or held_out.name
    return [SharedItems(side, name, split, len(own), _none(), rows[near], usual, held_out.image_ids)]


def mean_recall(split: SplitEmbeddings, pairs: int) -> float:
    """Return the mean recall@1 of both directions among some pairs of a split."""
    first, second = choose_pairs(split.relations)
    first, second = first[:pairs], second[:pairs]
    both = split.similarities(first, second).map(lambda S: S.detach().float())
    valid = torch.from_numpy(~split.relations.is_positive(first, second) | np.eye(len(first), dtype=bool))
    directions = align(both.i2t, valid, ""), align(both.t2i, valid.T, "")
    return float(np.mean([one.recall for one in directions]))


def pairs_of_both(train: SplitEmbeddings, held_out: SplitEmbeddings) -> int:
    """Return how many pairs can be compared in both. Raises NotChecked where they are too few."""
    pairs = min(len(choose_pairs(one.relations)[0]) for one in (train, held_out))
    if pairs < 4 * LEAST:
        raise NotChecked(f"a split has {pairs} pairs; {4 * LEAST} are needed")
    return min(pairs, _MOST_PAIRS)


def _unit(vectors: Tensor, most: int | None) -> tuple[Tensor, Rows]:
    """Return the finite vectors that are not zero, of unit length, and their rows; of more than `most` a sample."""
    rows = np.flatnonzero((vectors.isfinite().all(1) & vectors.any(1)).numpy())
    if most is not None and len(rows) > most:
        rows = np.sort(np.random.default_rng(0).choice(rows, most, replace=False))
    own = vectors[torch.from_numpy(rows)]
    return (unit_rows(own, "rows")[0] if len(own) else own), rows


def _none() -> Rows:
    return np.zeros(0, np.int64)
