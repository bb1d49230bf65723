"""The rows of S of one direction of a batch, any of which are computed alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from lossscope.core.similarity import Mask, cosine
from lossscope.core.types import Direction
from lossscope.engine.direction_rows import DirectionRows

MaskOf = Callable[[Tensor], Mask]  # (n,) places of queries -> the mask of their rows


@dataclass(frozen=True)
class QueryRows:
    """S (number, columns) of one direction, given or as a product of embeddings that is never whole."""

    number: int  # of queries
    columns: int  # candidates
    mask: MaskOf
    S: Tensor | None = None  # (number, columns); None: the cosines of embeddings
    queries: Tensor | None = None  # (number, d) of unit length
    candidates: Tensor | None = None  # (columns, d)

    def take(self, places: Tensor, with_embeddings: bool) -> DirectionRows:
        """Return the rows of some queries.

        Args:
            places: (n,) of the queries, on the device of S.
            with_embeddings: for probes that read them.
        """
        queries = None if self.queries is None else self.queries[places]
        if self.S is not None:
            S = self.S.detach()[places]
        else:
            assert queries is not None and self.candidates is not None, "rows have similarities or embeddings"
            S = cosine(queries, self.candidates)
        if not with_embeddings:
            return DirectionRows(S, self.mask(places))
        return DirectionRows(S, self.mask(places), queries, self.candidates)

    @property
    def device(self) -> torch.device:
        """Where S is."""
        tensor = self.queries if self.S is None else self.S
        assert tensor is not None
        return tensor.device


def pairs_at(columns: int, offset: int = 0, direction: Direction = "i2t") -> MaskOf:
    """Return the masks of rows whose query i matches column offset + i, every entry valid."""

    def mask(places: Tensor) -> Mask:
        match = torch.zeros(len(places), columns, dtype=torch.bool, device=places.device)
        match[torch.arange(len(places), device=places.device), places + offset] = True
        return Mask(match, torch.ones_like(match), direction=direction)

    return mask


def rows_of(mask: Mask) -> MaskOf:
    """Return the masks of rows of a mask."""
    return mask.rows


def columns_of(mask: Mask) -> MaskOf:
    """Return the masks of columns of a mask, as rows of the other direction."""
    return lambda places: mask.columns(places).t()


def of_labels(labels: Tensor) -> MaskOf:
    """Return the masks of items of one set: items of one label match, and none is a candidate of itself."""

    def mask(places: Tensor) -> Mask:
        other = torch.arange(len(labels), device=labels.device)[None, :] != places[:, None]
        return Mask((labels[places][:, None] == labels[None, :]) & other, other)

    return mask


def without_itself(mask: Mask) -> MaskOf:
    """Return the masks of rows of a mask of one set, in which no item is a candidate of itself."""

    def of_rows(places: Tensor) -> Mask:
        rows = mask.rows(places)
        other = torch.arange(rows.match.shape[1], device=places.device)[None, :] != places[:, None]
        return Mask(rows.match, rows.valid & other, rows.info, rows.direction)

    return of_rows
