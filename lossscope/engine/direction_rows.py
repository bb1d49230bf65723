"""Rows of S of one batch in one direction, with zeros in place of NaN and Inf."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from lossscope.core.similarity import Mask

HALF_TYPES = (torch.float16, torch.bfloat16)  # converted to float32 before anything is computed


@dataclass(frozen=True)
class DirectionRows:
    """Rows of S of one batch in one direction, their mask and their embeddings."""

    S: Tensor  # (q, c)
    mask: Mask  # of these rows
    queries: Tensor | None = None  # (q, d) embeddings, for probes that read them
    candidates: Tensor | None = None  # (c, d)

    def t(self) -> DirectionRows:
        """Return the rows of the other direction."""
        return DirectionRows(self.S.T.contiguous(), self.mask.t(), self.candidates, self.queries)

    def detach(self) -> DirectionRows:
        """Return the same rows without a graph, S in float32 or wider."""
        S = self.S.detach().float() if self.S.dtype in HALF_TYPES else self.S.detach()
        return replace(self, S=S)

    def pad_if_empty(self) -> DirectionRows:
        """Return the same rows, or a row of zeros if there are none: probes and objectives never see an empty S."""
        if len(self.S):
            return self
        match = torch.zeros(1, self.S.shape[1], dtype=torch.bool, device=self.S.device)
        match[0, 0] = True
        mask = Mask(match, torch.ones_like(match), direction=self.mask.direction)
        queries = None if self.queries is None else self.queries.new_zeros(1, self.queries.shape[1])
        return DirectionRows(self.S.new_zeros(1, self.S.shape[1]), mask, queries, self.candidates)

    def finite_entries(self) -> tuple[Tensor, Tensor]:
        """Return (q, c) which entries of S are finite, and () whether all valid entries and embeddings are finite."""
        entries = self.S.isfinite()
        all_finite = (entries if self.mask.all_valid else entries | ~self.mask.valid).all()
        for embeddings in (self.queries, self.candidates):
            all_finite = all_finite if embeddings is None else all_finite & embeddings.isfinite().all()
        return entries, all_finite

    def zero_unless(self, all_finite: Tensor, entries: Tensor) -> DirectionRows:
        """Return the rows with zeros in place of NaN and Inf; all zeros unless `all_finite`."""
        S = self.S.where(entries & all_finite, 0.0)
        queries, candidates = (
            None if x is None else x.where(x.isfinite() & all_finite, 0.0) for x in (self.queries, self.candidates)
        )
        return DirectionRows(S, self.mask, queries, candidates)

    def with_embeddings_in_mask(self) -> DirectionRows:
        """Return the rows with the embeddings in `mask.info`, where objectives read them; unchanged without any."""
        if self.queries is None or self.candidates is None:
            return self
        info = {**self.mask.info, "queries": self.queries, "candidates": self.candidates}
        return replace(self, mask=replace(self.mask, info=info))


def zero_unless_finite(rows: Sequence[DirectionRows]) -> tuple[Tensor, list[DirectionRows]]:
    """Return () whether everything is finite, and the rows; all zeros if something is not."""
    entries, flags = zip(*(part.finite_entries() for part in rows), strict=True)
    all_finite = flags[0] if len(flags) == 1 else torch.stack(list(flags)).all()
    return all_finite, [part.zero_unless(all_finite, finite) for part, finite in zip(rows, entries, strict=True)]
