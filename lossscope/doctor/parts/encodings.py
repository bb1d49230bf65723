"""Two encodings of the same items: of two sources, or by a model, alone and in a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.facts import Missing, TooLittle
from lossscope.core.pair import Pair
from lossscope.core.sides import plural
from lossscope.core.types import Rows
from lossscope.core.unit_vectors import moderate_rows

from .alignment import LEAST, choose_pairs, mean_recall
from .patient import Patient
from .vectors import precision_of

MOST = 32  # pairs that a model encodes alone and in one batch
GROWTH = 32  # largest rounding error after all layers, in units of the last digit
_WITHIN = 1024  # items for the mean cosine of different items
_BLOCK = 1 << 14
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class SideEncodings:
    """One side in two encodings."""

    name: str  # of the side, plural
    ids: Sequence[str]  # n
    first: Tensor  # (n, d) vectors
    second: Tensor  # (n, d), of the same items

    @cached_property
    def cosines(self) -> Floats:
        """(n,) cosine of an item in both encodings; 1 where both are zero, 0 where only one is."""
        parts = []
        for first, second in zip(*(torch.split(rows, _BLOCK) for rows in (self.first, self.second)), strict=True):
            x, y = (moderate_rows(rows.double().nan_to_num(0.0, 0.0, 0.0))[0] for rows in (first, second))
            lengths = x.norm(dim=1) * y.norm(dim=1)
            both_zero = (x.norm(dim=1) == 0) & (y.norm(dim=1) == 0)
            parts.append(torch.where(both_zero, 1.0, (x * y).sum(1) / lengths.clamp(min=1e-300)))
        return torch.cat(parts).numpy()

    @cached_property
    def usual(self) -> float:
        """Mean cosine of different items in the first encoding."""
        x = _unit(self.first[:_WITHIN])
        n = len(x)
        return float((x.sum(0).square().sum() - x.square().sum()) / max(n * (n - 1), 1))

    @cached_property
    def auc(self) -> float:
        """Probability that an item is nearer to itself than to another item in the other encoding; 0.5 by chance."""
        x, y = (_unit(rows[:_WITHIN]) for rows in (self.first, self.second))
        S = (x - x.mean(0)) @ (y - y.mean(0)).T
        positive = S.diagonal()[:, None]
        above = (positive < S).double() + 0.5 * (positive == S).double()
        return float(1 - (above.sum() - 0.5 * len(S)) / max(len(S) * (len(S) - 1), 1))

    @property
    def rounding(self) -> float:
        """Largest 1 - cosine that rounding explains: 0.008 in bfloat16, 0.0001 in float16."""
        digits = max(float(torch.finfo(precision_of(rows)).eps) / 2 for rows in (self.first, self.second))
        return max((GROWTH * digits) ** 2 / 2, 1e-6)


def _unit(rows: Tensor) -> Tensor:
    """Return rows of unit length in float64; entries that are not finite become 0."""
    return torch.nn.functional.normalize(moderate_rows(rows.double().nan_to_num(0.0, 0.0, 0.0))[0], dim=1)


@dataclass(frozen=True)
class Encodings:
    """The same items of both sides in two encodings."""

    names: Pair[str]  # of the encodings: `a.npz` and `b.npz`, `alone` and `in batches of 32`
    sides: tuple[SideEncodings, ...]  # a labelled set has one
    recall: Pair[float] | None  # mean recall@1 of both directions in each encoding; None for too few pairs
    pairs: int  # of the recall
    needs: ClassVar[tuple[type, ...]] = (SplitEmbeddings,)

    @classmethod
    def of(cls, _: Patient, stored: SplitEmbeddings) -> Encodings:
        """Encode a sample alone and in one batch. Raises Missing where the source has no model that encodes items."""
        if stored.encode_rows is None:
            raise Missing(
                "it has one encoding of its items; --same-items compares two", "a second encoding (--same-items)"
            )
        rows = Pair(*(rows[:: max(len(rows) // MOST, 1)][:MOST] for rows in choose_pairs(stored.relations)))
        if len(rows.i2t) < LEAST:
            raise TooLittle(f"it has {len(rows.i2t)} pairs to encode twice; {LEAST} are needed")
        alone, together = (
            Pair(*(encode(batches(numbers)) for encode, numbers in zip(stored.encode_rows, rows, strict=True)))
            for batches in (_one_by_one, _together)
        )
        return compare(Pair("alone", f"in batches of {len(rows.i2t)}"), stored, rows, alone, together)


def _one_by_one(rows: Rows) -> list[Rows]:
    return [rows[row : row + 1] for row in range(len(rows))]


def _together(rows: Rows) -> list[Rows]:
    return [rows]


def compare(
    names: Pair[str], stored: SplitEmbeddings, rows: Pair[Rows], first: Pair[Tensor], second: Pair[Tensor]
) -> Encodings:
    """Return two encodings of pairs side by side.

    Args:
        names: of the encodings.
        stored: split of the items.
        rows: (m,) of the pairs, of each side.
        first: (m, d) vectors of these rows in one encoding, of each side.
        second: (m, d) vectors in the other encoding.
    """
    relations = stored.relations
    recalls = [_recall(vectors, rows, stored) for vectors in (first, second)]
    sides = (relations.sides.first, relations.sides.second or relations.sides.first)
    ids = (stored.image_ids, stored.caption_ids)
    found = [
        SideEncodings(plural(name), [side_ids[row] for row in numbers], x, y)
        for name, side_ids, numbers, x, y in zip(sides, ids, rows, first, second, strict=True)
    ]
    return Encodings(names, tuple(found[: 1 if relations.one_set else 2]), Pair(*recalls), len(rows.i2t))


def _recall(vectors: Pair[Tensor], rows: Pair[Rows], stored: SplitEmbeddings) -> float:
    """Return the mean recall@1 of pairs among each other."""
    x, y = map(_unit, vectors)
    S = x @ y.T
    return mean_recall(Pair(S, S.T), rows.i2t, rows.t2i, stored.relations)
