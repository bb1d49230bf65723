"""Several splits of one data set, or of one source, as one: for pairs across them."""

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


def joined_splits(splits: Sequence[Split]) -> Split:
    """Return several splits as one, the items of the first of them in front.

    Raises InputError where two of them share an id.
    """
    if len(splits) == 1:
        return splits[0]
    relations = _joined_relations([one.relations for one in splits])
    first, second = ([one for part in splits for one in getattr(part, name)] for name in ("image_ids", "caption_ids"))
    _require_unique(first, second)
    owners = relations.caption_image if relations.has_owners and relations.sides.is_image_text else None
    captions = [text for part in splits for text in part.captions]
    return Split(
        "+".join(one.name for one in splits), _joined_items([one.images for one in splits]), captions, owners, first,
        second, "+".join(one.fingerprint for one in splits), relations=relations if owners is None else None,  # type: ignore[arg-type]
    )  # fmt: skip


def joined_sources(parts: Sequence[SplitEmbeddings]) -> SplitEmbeddings:
    """Return the embeddings of several splits of one source as one.

    Raises InputError for similarities without embeddings, and where two splits share an id.
    """
    if len(parts) == 1:
        return parts[0]
    whole = parts[0]
    images, captions = ([getattr(one, name) for one in parts] for name in ("images", "captions"))
    if any(one is None for one in (*images, *captions)):
        raise InputError(f"{whole.name} must have embeddings for pairs across splits; it has similarities only")
    first, second = ([one for part in parts for one in getattr(part, name)] for name in ("image_ids", "caption_ids"))
    _require_unique(first, second)
    return replace(
        whole, images=torch.cat(images), captions=torch.cat(captions), caption_image=None, image_ids=first,
        caption_ids=second, relations=_joined_relations([one.relations for one in parts]), read_input_keys=None,
        layer_gradients=None,
        encode_rows=None,
    )  # fmt: skip


def _joined_items(parts: list[Images]) -> Images:
    if all(isinstance(one, Texts) for one in parts):
        return Texts([text for one in parts for text in one.texts])  # type: ignore[attr-defined]
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
        for place, items in enumerate(self.parts):
            own = np.nonzero(part == place)[0]
            for row, item in zip(own.tolist(), items.take(rows[own] - starts[place]) if len(own) else (), strict=True):
                taken[row] = item
        return np.stack(taken)


def _joined_relations(parts: Sequence[Relations]) -> Relations:
    """Return the positives of several splits, rows counted on."""
    firsts, seconds = np.cumsum([0, *(one.first for one in parts)]), np.cumsum([0, *(one.second for one in parts)])
    if parts[0].labels is not None:
        raise InputError("pairs across splits must be of two sides; this is one labelled set. Take one --split")
    pairs = [
        one.positives + np.array([first, second])
        for one, first, second in zip(parts, firsts[:-1], seconds[:-1], strict=True)
    ]
    return Relations(
        int(firsts[-1]), int(seconds[-1]), np.concatenate(pairs), parts[0].sides,
        negatives=_joined_negatives(parts, seconds),
    )  # fmt: skip


def _joined_negatives(parts: Sequence[Relations], seconds: Rows) -> Rows | None:
    """Return the mined negatives (N, k) of all splits, rows of the second side counted on; None without any."""
    mined = [np.zeros((one.first, 0), np.int64) if one.negatives is None else one.negatives for one in parts]
    width = max(one.shape[1] for one in mined)
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
            raise InputError("splits must have different ids to be taken together; they share some. Take one --split")
