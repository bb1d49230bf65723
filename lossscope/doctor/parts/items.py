"""A sample of the items as the probes see them: finite rows of unit length, small enough to compare all with all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.facts import TooLittle
from lossscope.core.pair import Pair
from lossscope.core.relations import NONE, Relations
from lossscope.core.types import Rows

from .matrix import Matrix
from .patient import Patient
from .vectors import Vectors, draw_rows, unit_rows_of

MOST = 4096  # items of the first side; their shares are within 1.6 points at 95 % (docs/doctor.md)
Flags = npt.NDArray[np.bool_]
_PER_ITEM = 8  # items of the second side of each, on average


@dataclass(frozen=True)
class Items:
    """A sample of the items of both sides with their relations, and its source."""

    split: SplitEmbeddings  # the sample
    source: SplitEmbeddings  # of the sample, as it is stored
    rows: Pair[Rows]  # of the sample in the source
    needs: ClassVar[tuple[type, ...]] = (SplitEmbeddings,)

    @classmethod
    def of(cls, patient: Patient, stored: SplitEmbeddings) -> Items:
        """Draw the sample. Raises TooLittle where most rows are zero or not finite, or S leaves float32."""
        usable = _usable(patient, stored)
        if any(int(flags.sum()) < max(2, 0.5 * min(map(len, usable))) for flags in usable):
            raise TooLittle("too few of its rows are finite")
        rows = sample_rows(stored.relations, usable)
        return cls(subset(stored, rows), stored, rows)

    @property
    def whole(self) -> tuple[int, int]:
        """Items of each side in the source."""
        return self.source.relations.first, self.source.relations.second

    @property
    def is_sample(self) -> bool:
        """Whether the source has more items."""
        return self.whole != (self.split.relations.first, self.split.relations.second)


def _usable(patient: Patient, stored: SplitEmbeddings) -> Pair[Flags]:
    """Return which rows of each side are finite and, of embeddings, not zero."""
    if stored.images is not None and stored.captions is not None:
        return Pair(*patient.part(Vectors).finite_rows())
    if stored.similarity is None:
        return Pair(np.ones(stored.relations.first, dtype=bool), np.ones(stored.relations.second, dtype=bool))
    Matrix(stored.similarity).require_float32()
    finite = stored.similarity.isfinite()
    rows, columns = finite.all(1).numpy(), finite.all(0).numpy()
    return Pair(rows, columns if rows.any() else np.zeros_like(columns))


def sample_rows(relations: Relations, usable: Pair[Flags], seed: int = 0, most: int = MOST) -> Pair[Rows]:
    """Return rows of both sides: up to `most` items of the first side with their positives and mined negatives.

    From a labelled set whole classes are taken.

    Args:
        relations: of all items.
        usable: bool of each side: which rows may be taken.
        seed: of the choice.
        most: items of the first side.
    """
    rng = np.random.default_rng(seed)
    if relations.labels is not None:
        return _sample_classes(relations.labels, usable.i2t, rng, most)
    candidates = np.flatnonzero(usable.i2t & (relations.number_of_positives > 0))
    first = draw_rows(candidates, most, rng)
    is_first = np.zeros(relations.first, dtype=bool)
    is_first[first] = True
    pairs = relations.positives[is_first[relations.positives[:, 0]]]
    pairs = pairs[draw_rows(np.arange(len(pairs)), most * _PER_ITEM, rng)]
    second = np.zeros(relations.second, dtype=bool)
    second[pairs[:, 1]] = True
    if relations.negatives is not None:
        mined = relations.negatives[first]
        second[mined[mined != NONE]] = True
    second &= usable.t2i
    return Pair(first, np.flatnonzero(second))


def _sample_classes(labels: Rows, usable: Flags, rng: np.random.Generator, most: int) -> Pair[Rows]:
    rows = np.flatnonzero(usable)
    classes = rng.permutation(np.unique(labels[rows]))
    sizes = np.bincount(np.unique(labels, return_inverse=True)[1][rows])
    order = np.searchsorted(np.unique(labels), classes)
    taken = classes[: max(2, int(np.searchsorted(np.cumsum(sizes[order]), most, "right")))]
    chosen = rows[np.isin(labels[rows], taken)]
    chosen = draw_rows(chosen, 2 * most, rng)
    return Pair(chosen, chosen)


def subset_relations(relations: Relations, rows: Pair[Rows]) -> Relations:
    """Return the relations between the given rows, numbered anew."""
    if relations.labels is not None:
        return Relations.of_labels(relations.labels[rows.i2t], relations.sides.first)
    numbers = [np.full(size, NONE, np.int64) for size in (relations.first, relations.second)]
    for number, of_side in zip(numbers, rows, strict=True):
        number[of_side] = np.arange(len(of_side))
    pairs = np.stack([numbers[side][relations.positives[:, side]] for side in (0, 1)], 1)
    negatives = None
    if relations.negatives is not None:
        old = relations.negatives[rows.i2t]
        negatives = np.where(old == NONE, NONE, numbers[1][old])
    return Relations(len(rows.i2t), len(rows.t2i), pairs[(pairs >= 0).all(1)], relations.sides, None, negatives)


def subset(split: SplitEmbeddings, rows: Pair[Rows]) -> SplitEmbeddings:
    """Return a split of the given rows, with embeddings of unit length.

    Args:
        split: with embeddings or similarities.
        rows: of both sides.
    """
    relations = subset_relations(split.relations, rows)
    first, second = split.images, split.captions
    one_set = relations.one_set
    images = None if first is None else unit_rows_of(first, rows.i2t)
    captions = images if one_set else None if second is None else unit_rows_of(second, rows.t2i)
    similarity = split.similarity
    if similarity is not None:
        similarity = similarity[torch.from_numpy(rows.i2t)][:, torch.from_numpy(rows.t2i)]
    scorer = split.pair_scorer
    keys = split.input_keys if split.read_input_keys is not None else Pair(None, None)
    return replace(
        split, images=images, captions=captions, similarity=similarity, caption_image=None, relations=relations,
        image_ids=[split.image_ids[row] for row in rows.i2t], caption_ids=[split.caption_ids[row] for row in rows.t2i],
        pair_scorer=None if scorer is None else lambda q, c: scorer(rows.i2t[q], rows.t2i[c]),
        read_input_keys=lambda: Pair(
            None if keys.i2t is None else keys.i2t[rows.i2t], None if keys.t2i is None else keys.t2i[rows.t2i]
        ),
        layer_gradients=None, encode_rows=None,
    )  # fmt: skip
