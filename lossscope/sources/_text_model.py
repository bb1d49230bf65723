"""A split as a model of texts sees it: queries and documents, or the captions of images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.pair import Pair
from lossscope.core.sides import plural
from lossscope.core.types import Rows
from lossscope.core.unit_vectors import unit_rows
from lossscope.datasets.base import Split, Texts
from lossscope.errors import InputError
from lossscope.io.files import fingerprint_of
from lossscope.io.reading import show_path

from ._text_vectors import TextVectors
from .checkpoints.input_keys import input_keys


@dataclass(frozen=True)
class TextModel:
    """A folder with a model of texts."""

    path: Path
    rows: TextVectors
    files: Sequence[str]  # fingerprints of its files and of how it is read
    objective: str | None  # spec of the loss it is usually trained with
    max_length: int | None = None  # tokens to which texts are cut, for the notice; None: it is not known

    def split(self, split: Split, notices: tuple[str, ...]) -> SplitEmbeddings:
        """Return the split: of queries and documents as it is; of images their first captions take their place.

        Raises InputError for images with one caption each, and vectors that are zero or not finite.
        """
        if isinstance(split.images, Texts):
            return self._texts(split, split.images.texts, notices)
        return self._captions(split, notices)

    def _texts(self, split: Split, texts: Sequence[str], notices: tuple[str, ...]) -> SplitEmbeddings:
        sides = split.relations.sides
        first, first_notes = self._unit_rows(texts, sides.first)
        second, second_notes = self._unit_rows(split.captions, str(sides.second))
        return SplitEmbeddings(
            name=show_path(self.path),
            images=first,
            captions=second,
            similarity=None,
            caption_image=None,
            image_ids=split.image_ids,
            caption_ids=split.caption_ids,
            fingerprint=fingerprint_of(*self.files, split.fingerprint),
            objective=self.objective,
            split=split.name,
            used=split.used,
            scores=split.scores,
            notices=(*first_notes, *second_notes, *notices, *split.notices),
            read_input_keys=partial(input_keys, split),
            read_texts=split.texts_by_id,
            encode_rows=Pair(
                partial(self._encode_rows, texts, sides.first),
                partial(self._encode_rows, split.captions, str(sides.second)),
            ),
            relations=split.relations,
        )

    def _captions(self, split: Split, notices: tuple[str, ...]) -> SplitEmbeddings:
        owners = split.relations.caption_image
        first = np.unique(owners, return_index=True)[1]
        rest = np.setdiff1d(np.arange(len(split.captions)), first)
        if not len(rest):
            raise InputError(f"{self.path} compares captions; images of {split.name!r} must have two or more each")
        rows, normalised = self._unit_rows(split.captions, "caption")
        row_of = {int(image): row for row, image in enumerate(owners[first])}
        return SplitEmbeddings(
            name=show_path(self.path),
            images=rows[torch.from_numpy(first)],
            captions=rows[torch.from_numpy(rest)],
            similarity=None,
            encode_rows=Pair(
                partial(self._encode_rows, [split.captions[row] for row in first], "caption"),
                partial(self._encode_rows, [split.captions[row] for row in rest], "caption"),
            ),
            caption_image=np.array([row_of[int(image)] for image in owners[rest]], dtype=np.int64),
            image_ids=[split.caption_ids[row] for row in first],
            caption_ids=[split.caption_ids[row] for row in rest],
            fingerprint=fingerprint_of(*self.files, split.fingerprint),
            objective=self.objective,
            split=split.name,
            used=split.used,
            notices=(
                *normalised,
                *notices,
                *split.notices,
                "a text model: the first caption of each image takes its place (rows named i2t)",
            ),
        )

    def _encode_rows(self, texts: Sequence[str], side: str, batches: Sequence[Rows]) -> Tensor:
        """Return the vectors of some texts of a side, each batch encoded on its own."""
        return torch.cat([self.rows.encode([texts[row] for row in rows], side)[0] for rows in batches])

    def _unit_rows(self, texts: Sequence[str], side: str) -> tuple[Tensor, tuple[str, ...]]:
        """Return vectors of unit length, and what the user should know of them."""
        vectors, cut = self.rows(texts, side)
        number = int(cut.sum())
        cut_notice = f"{number} of {len(texts)} {plural(side)} were cut to {self.max_length} tokens" if number else None
        rows, notice = unit_rows(vectors, f"{side} vectors of {self.path}")
        return rows, tuple(text for text in (cut_notice, notice) if text)
