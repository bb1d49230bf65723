"""Do training data and held-out data share items?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.facts import Missing, TooLittle
from lossscope.core.types import Rows
from lossscope.datasets.lint.targets import is_rows
from lossscope.sources.base import read_source

from .alignment import LEAST
from .items import Items
from .patient import Patient
from .trained_model import TrainedModel
from .vectors import draw_rows, unit_rows_of

NEAR = 0.01  # of the usual distance between neighbours; an input encoded twice has 1e-5 of it
_MOST = 8192  # held-out items that are compared
_TILE, _WITHIN = 1 << 14, 2048
_RESOLUTION = 5e-4  # of a distance from a cosine in float32


@dataclass(frozen=True)
class SharedItems:
    """Items of one side in both splits."""

    name: str  # of the side
    train: str  # name of the split
    held_out: str
    total: int  # held-out items that were compared
    equal: Rows  # held-out rows whose input is in the training data
    near: Rows  # held-out rows whose embedding nearly equals that of a training item
    usual: float = 0.0  # share of the training items whose embedding nearly equals that of another training item
    ids: Sequence[str] = field(default=(), repr=False)  # of all held-out items

    @property
    def rows(self) -> Rows:
        """Held-out rows that are in the training data, ascending."""
        return np.union1d(self.equal, self.near)

    @property
    def share(self) -> float:
        """Share of the held-out items that are in the training data."""
        return len(self.rows) / max(self.total, 1)


@dataclass(frozen=True)
class Splits:
    """What training and held-out data share, for each side."""

    shared: tuple[SharedItems, ...]
    needs: ClassVar[tuple[type, ...]] = (SplitEmbeddings, Items)

    @classmethod
    def of(cls, patient: Patient, stored: SplitEmbeddings, _: Items) -> Splits:
        """Compare embeddings with those of `--against`, else with held-out data. Raises Missing without either."""
        options, shared = patient.options, []
        for target in (target for target in options.against if not is_rows(target)):  # rows of text are another part
            shared += shared_by_embedding(read_source(target, options.request("train")), stored, target)
        if options.against and not shared:
            raise Missing("the other sources have no embeddings to compare", "embeddings")
        if not options.against:
            shared = shared_by_embedding(stored, patient.part(TrainedModel).held_out, options.source.named_split)
            if not shared:
                raise TooLittle("a split has too few embeddings to compare")
        return cls(tuple(shared))


def shared_by_embedding(train: SplitEmbeddings, held_out: SplitEmbeddings, name: str) -> list[SharedItems]:
    """Return which held-out items of the first side have nearly the embedding of a training item.

    The second side is left out: in sound data, too, both splits hold equal captions of different images, and documents
    that answer several queries.
    """
    first, second = held_out.images, train.images
    if first is None or second is None or first.shape[1] != second.shape[1]:
        return []
    (held_out_rows, rows), (train_rows, _) = _unit(first, _MOST), _unit(second, None)
    if min(len(held_out_rows), len(train_rows)) < LEAST:
        return []
    near, usual = near_rows(held_out_rows, train_rows)
    side, split = held_out.relations.sides.first, held_out.split or held_out.name
    return [SharedItems(side, name, split, len(rows), np.zeros(0, np.int64), rows[near], usual, held_out.image_ids)]


def _unit(vectors: Tensor, most: int | None) -> tuple[Tensor, Rows]:
    """Return the finite vectors that are not zero, at unit length, and their rows; at most `most`, at random."""
    rows = np.flatnonzero((vectors.isfinite().all(1) & vectors.any(1)).numpy())
    if most is not None:
        rows = draw_rows(rows, most, np.random.default_rng(0))
    return unit_rows_of(vectors, rows), rows


def near_rows(held_out: Tensor, train: Tensor, share: float = NEAR) -> tuple[Rows, float]:
    """Return the held-out rows that nearly equal a training row, and the share of training rows that do so.

    A row nearly equals another where their distance is a small share of the usual distance between training rows. In a
    collapsed model all distances are small, so an absolute threshold would not do.

    Args:
        held_out: (n, d) unit rows.
        train: (m, d) unit rows.
        share: of the median distance of a training row to its nearest other row.
    """
    nearest, _ = _nearest(held_out, train)
    distances = (held_out.double() - train[nearest].double()).norm(dim=1)
    sample = train[:_WITHIN]
    _, cosines = _nearest(sample, train, skip_self=True)
    train_distances = (2 - 2 * cosines.double()).clamp(min=0).sqrt()
    limit = share * float(train_distances.median())
    rows: Rows = (distances <= limit).nonzero()[:, 0].numpy()
    return rows, float((train_distances <= max(limit, _RESOLUTION)).double().mean())


def _nearest(rows: Tensor, among: Tensor, skip_self: bool = False) -> tuple[Tensor, Tensor]:
    """Return the nearest row of each row, and its cosine. `skip_self`: `rows` are the first rows of `among`."""
    nearest, best = [], []
    for start in range(0, len(rows), 1024):
        block = rows[start : start + 1024].float()
        top = torch.full((len(block),), -torch.inf)
        nearest_row = torch.zeros(len(block), dtype=torch.int64)
        for offset in range(0, len(among), _TILE):
            S = block @ among[offset : offset + _TILE].float().T
            if skip_self:
                itself = torch.arange(start, start + len(block)) - offset
                inside = (itself >= 0) & (itself < S.shape[1])
                S[inside.nonzero()[:, 0], itself[inside]] = -torch.inf
            values, columns = S.max(1)
            nearest_row = torch.where(values > top, columns + offset, nearest_row)
            top = torch.maximum(top, values)
        nearest.append(nearest_row)
        best.append(top)
    return torch.cat(nearest), torch.cat(best)
