"""Leave out negatives that are known to be positives: another caption of the image, another answer of the question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from .base import MaskInputs, Needs


@dataclass(frozen=True)
class SameItem:
    """hidden = candidate is a positive of the query by the data's own pairs, though it stands as a negative.

    Of images and captions it is what `--same-image mask` does.
    Source: Bleeker & de Rijke 2022 (erratum E7); sentence-transformers' batches without duplicates.
    """

    needs: ClassVar[Needs] = "related"

    def hidden(self, rows: MaskInputs) -> Tensor:
        assert rows.related is not None
        return rows.related.to(rows.S.device)
