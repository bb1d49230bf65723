"""Compute the rows of S of one direction of a batch: all rows, or chosen rows alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from lossscope.core.similarity import Mask, cosine
from lossscope.core.types import Direction
from lossscope.engine.batch_masks import offset_mask
from lossscope.engine.direction_rows import DirectionRows
from lossscope.engine.one_batch import plain_mode

MaskOf = Callable[[Tensor | None], Mask]  # (n,) rows of queries, None: all -> the mask of their rows


@dataclass(frozen=True)
class Rows:
    """S (number, columns) of one direction, given or the product of embeddings."""

    number: int  # of queries
    columns: int  # candidates
    mask_of: MaskOf
    S: Tensor | None = None  # (number, columns); None: the cosines of embeddings
    queries: Tensor | None = None  # (number, d) of unit length
    candidates: Tensor | None = None  # (columns, d)

    def take(self, chosen: Tensor | None = None, with_embeddings: bool = True) -> DirectionRows:
        """Return the rows of the chosen queries.

        Args:
            chosen: (n,) rows of the queries, on the device of S; None: all of them.
            with_embeddings: for probes that read them.
        """
        queries = self.queries if self.queries is None or chosen is None else self.queries[chosen]
        if self.S is not None:
            S = self.S if chosen is None else self.S.detach()[chosen]
        else:
            assert queries is not None and self.candidates is not None, "rows have similarities or embeddings"
            with plain_mode(queries.device):
                S = cosine(queries, self.candidates)
        mask = self.mask_of(chosen)
        return DirectionRows(S, mask, queries, self.candidates) if with_embeddings else DirectionRows(S, mask)

    @property
    def device(self) -> torch.device:
        """The device of S."""
        tensor = self.queries if self.S is None else self.S
        assert tensor is not None
        return tensor.device


def pairs_at(number: int, columns: int, device: torch.device, offset: int = 0, direction: Direction = "i2t") -> MaskOf:
    """Return the masks of rows whose query i matches column offset + i, every entry valid."""

    def mask(queries: Tensor | None) -> Mask:
        if queries is None:  # the same in every batch of one shape
            return offset_mask(number, columns, offset, device, direction)
        match = _entries(queries + offset, columns)
        return Mask(match, torch.ones_like(match), direction=direction)

    return mask


def rows_of(mask: Mask) -> MaskOf:
    """Return the masks of rows of a mask."""
    return lambda queries: mask if queries is None else mask.rows(queries)


def columns_of(mask: Mask) -> MaskOf:
    """Return the masks of columns of a mask, as rows of the other direction."""
    return lambda queries: mask.t() if queries is None else mask.columns(queries).t()


def of_labels(labels: Tensor) -> MaskOf:
    """Return the masks of one set: items of one label match, and no item is a candidate of itself."""

    def mask(queries: Tensor | None) -> Mask:
        chosen = torch.arange(len(labels), device=labels.device) if queries is None else queries
        other = ~_entries(chosen, len(labels))
        return Mask((labels[chosen][:, None] == labels[None, :]) & other, other)

    return mask


def without_itself(mask: Mask) -> Mask:
    """Return a mask of one set in which no item is a candidate of itself."""
    return replace(mask, valid=mask.valid.clone().fill_diagonal_(False))


def _entries(columns: Tensor, number: int) -> Tensor:
    """Return (k, number) bool: in each row, True at its column of (k,)."""
    entries = torch.zeros(len(columns), number, dtype=torch.bool, device=columns.device)
    entries[torch.arange(len(columns), device=columns.device), columns] = True
    return entries
