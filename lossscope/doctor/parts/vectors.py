"""The embeddings of both sides as they are stored, neither normalised nor checked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.facts import Missing, TooLittle
from lossscope.core.relations import Relations
from lossscope.core.sides import plural
from lossscope.core.similarity import LARGEST_SIMILARITY
from lossscope.core.types import Progress, Rows
from lossscope.core.unit_vectors import row_lengths, unit_rows

from .patient import Patient

SCORES_PAIRS = "it scores pairs and has no embeddings"
_BLOCK = 1 << 16  # rows read together
_MANTISSA = {
    torch.float32: (16, 13),
    torch.float64: (45, 42),
}  # trailing zero bits of a number that was bfloat16 or float16


@dataclass(frozen=True)
class SideFacts:
    """Facts from one pass over the rows of a side."""

    name: str  # of the side, plural
    n: int
    d: int
    precision: torch.dtype  # type in which the numbers were computed, as far as their digits show
    not_finite: int  # rows with NaN or infinity
    first_not_finite: int | None
    zero: int  # rows of zeros
    first_zero: int | None
    norms: npt.NDArray[np.float64]  # (n,) length of each row; NaN for rows that are not finite
    # (d,) length of each column, over finite rows; beyond 1e154 infinite, below 1e-162 zero, as its square is
    column_norms: npt.NDArray[np.float64]

    @cached_property
    def lengths(self) -> npt.NDArray[np.float64]:
        """Lengths of the rows that are finite and not zero. Raises TooLittle where float64 does not hold one."""
        lengths: npt.NDArray[np.float64] = self.norms[np.nan_to_num(self.norms) > 0]
        if np.isinf(lengths).any():
            row, most = int(np.flatnonzero(np.isinf(self.norms))[0]), np.finfo(np.float64).max
            raise TooLittle(f"row {row} of the {self.name} is longer than {most:.2g}, the largest number of float64")
        return lengths


@dataclass(frozen=True)
class Vectors:
    """Embeddings (N, d) and (M, d) as they are stored; both are the same in one set."""

    first: Tensor
    second: Tensor
    relations: Relations
    progress: Progress | None = None  # called with (label, rows read, rows in all)
    needs: ClassVar[tuple[type, ...]] = (SplitEmbeddings,)

    @classmethod
    def of(cls, patient: Patient, stored: SplitEmbeddings) -> Vectors:
        """Take the embeddings of the source. Raises Missing where it has none."""
        if stored.images is None or stored.captions is None:
            raise Missing(
                SCORES_PAIRS if stored.similarity is None else "it has similarities and no embeddings", "embeddings"
            )
        return cls(stored.images, stored.captions, stored.relations, patient.options.source.progress)

    @cached_property
    def facts(self) -> tuple[SideFacts, ...]:
        """Facts of the first side, and of the second where it differs."""
        sides = self.relations.sides
        facts = (side_facts(self.first, plural(sides.first), self.progress),)
        if self.second is self.first:
            return facts
        return (*facts, side_facts(self.second, plural(str(sides.second)), self.progress))

    def finite_rows(self) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Return which rows of each side are finite and not zero."""
        usable = [np.nan_to_num(side.norms, nan=0.0) > 0 for side in self.facts]
        return usable[0], usable[-1]


def largest_product(patient: Patient) -> float:
    """Return the rounded product of the median lengths of both sides, 1 to 1e12; 1 for unit rows, or without rows."""
    if not patient.has(Vectors):
        return 1.0
    facts = patient.part(Vectors).facts
    medians = [float(np.nanmedian(side.norms)) for side in (facts[0], facts[-1])]
    product = min(medians[0] * medians[1], LARGEST_SIMILARITY)
    return max(round(product, 2), 1.0) if np.isfinite(product) else 1.0


def side_facts(rows: Tensor, name: str, progress: Progress | None = None) -> SideFacts:
    """Return the facts from one pass over the rows.

    Args:
        rows: (n, d).
        name: of the side, plural.
        progress: called with (label, done, of).
    """
    norms, squares = [], torch.zeros(rows.shape[1], dtype=torch.float64)
    for block in _blocks(rows):
        finite = block.isfinite().all(1)
        lengths = row_lengths(block)
        norms.append(torch.where(finite, lengths, torch.nan).numpy())
        squares += block.double()[finite].square().sum(0)
        if progress:
            progress(f"reading {name}", sum(map(len, norms)), len(rows))
    lengths_of_all = np.concatenate(norms)
    bad, zero = np.flatnonzero(np.isnan(lengths_of_all)), np.flatnonzero(lengths_of_all == 0)
    return SideFacts(
        name, len(rows), rows.shape[1], precision_of(rows),
        len(bad), int(bad[0]) if len(bad) else None, len(zero), int(zero[0]) if len(zero) else None,
        lengths_of_all, squares.sqrt().numpy(),
    )  # fmt: skip


def precision_of(rows: Tensor) -> torch.dtype:
    """Return the type in which numbers were computed: that of the array, or a narrower type that holds every digit."""
    if rows.dtype not in _MANTISSA:
        return rows.dtype
    head = rows[:256].contiguous()
    bits = head.view(torch.int32 if rows.dtype == torch.float32 else torch.int64)
    for zeros, narrow in zip(_MANTISSA[rows.dtype], (torch.bfloat16, torch.float16), strict=True):
        if not bool((bits & ((1 << zeros) - 1)).any()) and not _is_plain(head):
            return narrow
    return rows.dtype


def _is_plain(rows: Tensor) -> bool:
    """Return whether numbers are so few, such as 0 and 1, that every type holds them."""
    return len(np.unique(rows.numpy())) <= 16


def _blocks(rows: Tensor) -> Iterator[Tensor]:
    for block in torch.split(rows, _BLOCK):
        yield block.float() if block.dtype in (torch.float16, torch.bfloat16) else block


def unit_rows_of(side: Tensor, rows: Rows) -> Tensor:
    """Return the given rows of a side at unit length; they must be finite and not zero."""
    return unit_rows(side[torch.from_numpy(rows)], "a side")[0]


def draw_rows(rows: Rows, most: int, rng: np.random.Generator) -> Rows:
    """Return the rows, or `most` of them at random, ascending."""
    return rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))


def copies_of(rows: Tensor, keys: Rows | None = None) -> Rows:
    """Return numbers (n,), equal for equal inputs: the keys where known, else from the rows themselves.

    Args:
        rows: (n, d) embeddings.
        keys: (n,) of the inputs.
    """
    if keys is not None:
        return keys
    plain = np.ascontiguousarray(rows.float().numpy())
    as_bytes = plain.view(np.dtype((np.void, plain.shape[1] * plain.itemsize))).reshape(-1)
    return np.unique(as_bytes, return_inverse=True)[1].reshape(-1).astype(np.int64)
