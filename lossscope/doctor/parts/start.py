"""What could the model do before this training, on the same items?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from lossscope.core.facts import Missing
from lossscope.errors import InputError
from lossscope.sources.base import read_source

from .alignment import Alignment
from .items import Items, subset
from .patient import Patient


@dataclass(frozen=True)
class Start:
    """Recall@1 of the same pairs under the model before this training."""

    recalls: dict[str, float]  # of each direction
    needs: ClassVar[tuple[type, ...]] = (Alignment, Items)

    @classmethod
    def of(cls, patient: Patient, alignment: Alignment, items: Items) -> Start:
        """Read the dump. Raises Missing where none is named, InputError for other items."""
        if patient.options.before is None:
            raise Missing("the model before this training is not known; --before names a dump of it", "--before")
        split = read_source(Path(patient.options.before), patient.options.request())
        of_source, of_start = items.whole, (split.relations.first, split.relations.second)
        if of_source != of_start:
            raise InputError(
                f"--before must be a dump of the same items, {of_source[0]:,} and {of_source[1]:,} of both sides; got "
                f"{of_start[0]:,} and {of_start[1]:,} in {patient.options.before}. Encode the same items by the model "
                "before this training"
            )
        vectors = replace(
            items.source, images=split.images, captions=split.captions, similarity=split.similarity, pair_scorer=None
        )
        before = Alignment.of(patient, Items(subset(vectors, items.rows), vectors, items.rows))
        return cls({direction.label: direction.recall for direction in before.directions})
