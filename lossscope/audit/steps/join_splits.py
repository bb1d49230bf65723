"""Join several splits of one data set, or of one source, so that pairs can lie across them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.relations import NONE, Relations
from lossscope.core.types import ItemShape, Rows
from lossscope.datasets.base import Images, Items, Split, Texts
from lossscope.errors import InputError


def join_splits(splits: Sequence[Split]) -> Split:
    """Join splits; the items of the first split come first.

    Raises InputError where two splits share an id.
    """
    if len(splits) == 1:
        return splits[0]
    relations = _join_relations([split.relations for split in splits])
    first, second = ([id_ for part in splits for id_ in getattr(part, name)] for name in ("image_ids", "caption_ids"))
    _require_unique(first, second)
    owners = relations.caption_image if relations.has_owners and relations.sides.is_image_text else None
    captions = [text for part in splits for text in part.captions]
    return Split(
        "+".join(split.name for split in splits), _join_items([split.images for split in splits]), captions, owners,
        first, second, "+".join(split.fingerprint for split in splits), relations=relations if owners is None else None,  # type: ignore[arg-type]
    )  # fmt: skip


def join_sources(parts: Sequence[SplitEmbeddings]) -> SplitEmbeddings:
    """Join the embeddings of several splits of a source.

    Raises InputError for similarities without embeddings, and where two splits share an id.
    """
    if len(parts) == 1:
        return parts[0]
    whole = parts[0]
    images, captions = ([getattr(part, name) for part in parts] for name in ("images", "captions"))
    if any(vectors is None for vectors in (*images, *captions)):
        raise InputError(f"{whole.name} must have embeddings for pairs across splits; it has similarities only")
    first, second = ([id_ for part in parts for id_ in getattr(part, name)] for name in ("image_ids", "caption_ids"))
    _require_unique(first, second)
    return replace(
        whole, images=torch.cat(images), captions=torch.cat(captions), caption_image=None, image_ids=first,
        caption_ids=second, relations=_join_relations([part.relations for part in parts]), read_input_keys=None,
        layer_gradients=None,
        encode_rows=None,
    )  # fmt: skip


def _join_items(parts: list[Images]) -> Images:
    if all(isinstance(items, Texts) for items in parts):
        return Texts([text for items in parts for text in items.texts])  # type: ignore[attr-defined]
    return _JoinedItems(parts)


@dataclass(frozen=True, eq=False)
class _JoinedItems:
    """The first side's items of several splits, one after the other."""

    parts: list[Images]

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    @property
    def shape(self) -> ItemShape:
        """Shape of one item, that of the first split."""
        return self.parts[0].shape

    def take(self, rows: Rows) -> Items:
        """Return the items of rows, which are arrays."""
        starts = np.cumsum([0, *map(len, self.parts)])
        part = np.searchsorted(starts, rows, "right") - 1
        taken: list[Any] = [None] * len(rows)
        for number, items in enumerate(self.parts):
            of_part = np.nonzero(part == number)[0]
            for row, item in zip(
                of_part.tolist(), items.take(rows[of_part] - starts[number]) if len(of_part) else (), strict=True
            ):
                taken[row] = item
        return np.stack(taken)


def _join_relations(parts: Sequence[Relations]) -> Relations:
    """Join the positives of splits; each split's rows follow those of the split before."""
    firsts, seconds = np.cumsum([0, *(part.first for part in parts)]), np.cumsum([0, *(part.second for part in parts)])
    if parts[0].labels is not None:
        raise InputError("pairs across splits must be of two sides; this is one labelled set. Take one --split")
    pairs = [
        part.positives + np.array([first, second])
        for part, first, second in zip(parts, firsts[:-1], seconds[:-1], strict=True)
    ]
    return Relations(
        int(firsts[-1]), int(seconds[-1]), np.concatenate(pairs), parts[0].sides,
        negatives=_join_negatives(parts, seconds),
    )  # fmt: skip


def _join_negatives(parts: Sequence[Relations], seconds: Rows) -> Rows | None:
    """Join the mined negatives (N, k) of splits, rows as in `_join_relations`; None where no split has any."""
    mined = [
        np.zeros((relations.first, 0), np.int64) if relations.negatives is None else relations.negatives
        for relations in parts
    ]
    width = max(of_split.shape[1] for of_split in mined)
    if not width:
        return None
    joined = np.full((sum(map(len, mined)), width), NONE, np.int64)
    start = 0
    for rows, second in zip(mined, seconds[:-1], strict=True):
        joined[start : start + len(rows), : rows.shape[1]] = np.where(rows == NONE, NONE, rows + second)
        start += len(rows)
    return joined


def _require_unique(*columns: list[str]) -> None:
    """Raise InputError where splits share an id."""
    for ids in columns:
        if len(set(ids)) != len(ids):
            raise InputError("splits must have different ids to join them; they share ids. Take one --split")
