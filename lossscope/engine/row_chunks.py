"""Rows of several stacks, concatenated into chunks of one width."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from lossscope.core.similarity import Mask
from lossscope.probes.views.view import BatchShape, DenseRows

from .candidate_effects import CHUNK


def chunks(parts: Sequence[tuple[DenseRows, Tensor]]) -> Iterator[tuple[DenseRows, Tensor]]:
    """Yield rows of several stacks together, as many as fit a chunk."""
    waiting: list[tuple[DenseRows, Tensor]] = []
    entries = 0
    for rows, places in parts:
        if waiting and (entries + rows.S.numel() > CHUNK or rows.S.shape[1] != waiting[0][0].S.shape[1]):
            yield _joined(waiting)
            waiting, entries = [], 0
        waiting.append((rows, places))
        entries += rows.S.numel()
    if waiting:
        yield _joined(waiting)


def _joined(parts: Sequence[tuple[DenseRows, Tensor]]) -> tuple[DenseRows, Tensor]:
    """Concatenate rows of one width, each a batch of its own."""
    every = [rows for rows, _ in parts]
    places = torch.cat([places for _, places in parts])
    if len(every) == 1:
        return every[0], places
    first = every[0]

    def cat(name: str, of: Callable[[DenseRows], Any] = lambda rows: rows) -> Any:
        values = [getattr(of(rows), name) for rows in every]
        return None if values[0] is None else torch.cat(values)

    info = {name: torch.cat([rows.mask.info[name] for rows in every]) for name in first.mask.info}
    mask = Mask(cat("match", lambda rows: rows.mask), cat("valid", lambda rows: rows.mask), info, first.mask.direction)
    shape = BatchShape(
        len(places), first.shape.direction, cat("query_ids", lambda rows: rows.shape),
        cat("candidate_ids", lambda rows: rows.shape), has_all_queries=False,
    )  # fmt: skip
    return DenseRows(shape, cat("S"), mask), places
