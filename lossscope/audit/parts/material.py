"""What an audit knows of two sides: ids, positives, texts, models, pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.facts import Facts
from lossscope.core.row_numbers import RowNumbers
from lossscope.core.types import Progress
from lossscope.datasets.base import Split, Texts

from .items import AuditedItems, other_items
from .model_view import ModelView


@dataclass(eq=False)
class Material(AuditedItems, Facts):
    """N items of the first side and M of the second, with facts about them: `material.part(TextSpace)`."""

    models: tuple[ModelView, ...] = ()  # of the same items
    split: Split | None = None  # with texts, and pictures
    training: Split | None = None  # its texts fit the spaces of words; None: those of `split`

    @property
    def first_texts(self) -> list[str] | None:
        """(N,) texts of the first side; None if it has no texts."""
        items = None if self.split is None else self.split.images
        return list(items.texts) if isinstance(items, Texts) else None

    @classmethod
    def of(
        cls,
        sources: tuple[SplitEmbeddings, ...],
        split: Split | None,
        training: Split | None = None,
        top: int | None = None,
        progress: Progress | None = None,
    ) -> Material:
        """Join sources and data of the same items.

        Raises InputError if their items differ.
        """
        first: Any = split if split is not None else sources[0]
        items = AuditedItems(first.relations, list(first.image_ids), list(first.caption_ids), progress)
        views = tuple(ModelView.of(source, items, top) for source in sources)
        return cls(items.relations, items.image_ids, items.caption_ids, progress, views, split, training)


def take_ids(source: SplitEmbeddings, items: Split | SplitEmbeddings) -> tuple[SplitEmbeddings, tuple[str, ...]]:
    """Return a source with the ids of the items, and notices: a side without ids has its rows in their order.

    Args:
        source: of the audit.
        items: of its data, or its first source.

    Raises:
        InputError: the source has other items, as the first id that differs says.
    """
    pairs = (("first", source.image_ids, items.image_ids), ("second", source.caption_ids, items.caption_ids))
    matched = [side for side, ids, audited in pairs if list(ids) != list(audited)]
    for side, ids, audited in pairs:
        if side in matched and not (len(ids) == len(audited) and _are_rows(ids)):
            raise other_items(source.name, ids, audited, side)
    if not matched:
        return source, ()
    taken = replace(
        source, image_ids=list(items.image_ids), caption_ids=list(items.caption_ids), read_texts=None
    )  # its texts are by its own ids
    rows = f"{len(items.image_ids):,} and {len(items.caption_ids):,}"
    return taken, (
        f"{source.name} has no ids on its {' and '.join(matched)} side: assuming that its rows, {rows}, are those of "
        "the data in their order. If they are in another order, write the ids of the data into the dump",
    )


def _are_rows(ids: Sequence[str]) -> bool:
    return list(ids) == list(RowNumbers(len(ids)))
