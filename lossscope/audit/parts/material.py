"""What an audit knows of two sides: ids, positives, texts, models, pictures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.facts import Facts
from lossscope.core.types import Progress
from lossscope.datasets.base import Split, Texts

from .items import AuditedItems
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
