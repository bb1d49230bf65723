"""Can another order of the rows restore misaligned pairs?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from lossscope.core.types import Rows

from ..types import NotChecked
from .items import Items
from .vectors import Vectors

if TYPE_CHECKING:
    from .patient import Patient

_MOST = 4096  # pairs
_STRUCTURED = 1024  # queries and candidates whose structure is looked at
_ROTATIONS = 12
_QUERIES, _FEW_ROTATIONS = 128, 6  # where all candidates of a large source are looked at
_TILE = 1 << 14  # of these at a time
_PROBES = 512  # queries that are compared with their would-be positives


@dataclass(frozen=True)
class Order:
    """An order of the second side, and how far it brings positives above other items."""

    what: str  # `the second side shifted by 1 row`
    place: float  # mean share of the items above the positive; 0.5 by chance


@dataclass(frozen=True)
class Structure:
    """How far the best candidates of queries stand above those of rotated sides."""

    among_queries: float  # in deviations of the best candidates of single queries
    among_rotations: float  # in deviations of their mean over rotations: sides of few dimensions meet by accident


@dataclass(frozen=True)
class Restoration:
    """The best of the other orders that were tried, and structure between the sides."""

    best: Order | None
    structure: Structure

    @classmethod
    def of(cls, patient: Patient) -> Restoration:
        """Try shifts, both layouts of several captions, and orders by id. Raises NotChecked without embeddings."""
        items = patient.part(Items)
        split = items.split
        if split.images is None or split.captions is None or split.relations.one_set:
            raise NotChecked("it has no two sides of embeddings")
        if items.is_sample and patient.has(Vectors):
            return cls._of_many(patient.part(Vectors))
        first, second = split.images.float(), split.captions.float()
        structure = cross_structure(first[:_STRUCTURED], second[:_STRUCTURED], _ROTATIONS)
        orders = _orders(split.relations.positives, len(first), len(second), split.image_ids, split.caption_ids)
        tried = [Order(what, _place(first, second, pairs)) for what, pairs in orders]
        shift = best_shift(first, second, split.relations.positives)
        return cls(min([*tried, *shift], key=lambda one: one.place, default=None), structure)

    @classmethod
    def _of_many(cls, vectors: Vectors) -> Restoration:
        """Compare some queries with all candidates: the right partner of a query may be anywhere, so no sample has it.

        Orders other than shifts are not tried.
        """
        first_rows, second_rows = vectors.finite_rows()
        pairs = vectors.relations.positives[:_MOST]
        pairs = pairs[first_rows[pairs[:, 0]] & second_rows[pairs[:, 1]]]
        head = (
            vectors.first[torch.from_numpy(pairs[:, 0])].float(),
            vectors.second[torch.from_numpy(pairs[:, 1])].float(),
        )
        rows = np.flatnonzero(first_rows)
        rows = np.random.default_rng(0).choice(rows, min(len(rows), _QUERIES), replace=False)
        structure = cross_structure(vectors.first[torch.from_numpy(rows)].float(), vectors.second, _FEW_ROTATIONS)
        numbered = np.stack([np.arange(len(pairs))] * 2, 1)
        return cls(min(best_shift(*head, numbered), key=lambda one: one.place, default=None), structure)


def cross_structure(first: Tensor, second: Tensor, rotations: int) -> Structure:
    """Return how far above chance the best candidates of queries are, against those of rotated queries.

    Both sides are centred. A rotation of one side keeps its own structure, and removes all between the sides.

    Args:
        first: (q, d) queries.
        second: (m, d) candidates, read in tiles.
        rotations: random ones that are tried.
    """
    queries, d, generator = _centred(first), first.shape[1], torch.Generator().manual_seed(0)
    every = [queries]
    every += [queries @ torch.linalg.qr(torch.randn(d, d, generator=generator)).Q for _ in range(rotations)]
    centre = second[:_TILE].float().mean(0)
    best = torch.full((len(queries) * len(every),), -torch.inf)
    for tile in torch.split(second, _TILE):
        candidates = torch.nn.functional.normalize(tile.float() - centre, dim=1)
        candidates = candidates[candidates.isfinite().all(1)]
        if len(candidates):
            best = torch.maximum(best, (torch.cat(every) @ candidates.T).amax(1))
    own, *rotated = best.view(len(every), -1)
    means = torch.stack([x.mean() for x in rotated])
    above = float(own.mean() - means.mean())
    return Structure(above / max(float(rotated[0].std()), 1e-6), above / max(float(means.std()), 1e-6))


def best_shift(first: Tensor, second: Tensor, positives: Rows) -> Iterator[Order]:
    """Yield the shift of the pairs' order that brings both sides together best.

    Args:
        first: (N, d).
        second: (M, d).
        positives: (n, 2) rows, pair i and i + 1 neighbours in their file.
    """
    n = min(len(positives), _MOST)
    if n < 16:
        return
    x, y = _centred(first[positives[:n, 0]]), _centred(second[positives[:n, 1]])
    product = torch.fft.ifft(torch.fft.fft(x, dim=0).conj() * torch.fft.fft(y, dim=0), dim=0).real.sum(1)
    product[0] = -torch.inf
    shift = int(product.argmax())
    moved = np.stack([positives[:n, 0], np.roll(positives[:n, 1], -shift)], 1)
    shown = shift if shift <= n // 2 else shift - n
    yield Order(f"the second side shifted by {shown} row{'s' if abs(shown) > 1 else ''}", _place(first, second, moved))


def _orders(positives: Rows, n: int, m: int, first_ids: list[str], second_ids: list[str]) -> Iterator[tuple[str, Rows]]:
    """Yield orders that files are confused with: reversed, interleaved, sorted by id as text."""
    yield "the second side in reverse", np.stack([positives[:, 0], positives[::-1, 1]], 1)
    if m > n and m % n == 0:
        items = np.arange(m)
        yield f"caption i belonging to item i modulo {n}", np.stack([items % n, items], 1)
        yield f"caption i belonging to item i // {m // n}", np.stack([items // (m // n), items], 1)
    for ids, side in ((first_ids, 0), (second_ids, 1)):
        order = np.array(sorted(range(len(ids)), key=lambda row, ids=ids: ids[row]), dtype=np.int64)  # type: ignore[misc]
        if np.array_equal(order, np.arange(len(ids))):
            continue
        for rows, what in ((order, "sorted by id as text"), (np.argsort(order), "put back from ids sorted as text")):
            moved = positives.copy()
            moved[:, side] = rows[positives[:, side]]
            yield f"the {('first', 'second')[side]} side {what}", moved


def _place(first: Tensor, second: Tensor, pairs: Rows) -> float:
    """Return the mean share of the items above the positive, over some queries."""
    chosen = pairs[:: max(len(pairs) // _PROBES, 1)]
    candidates = second[:_MOST]
    queries, positive = first[chosen[:, 0]], second[chosen[:, 1]]
    own = (queries * positive).sum(1, keepdim=True)
    S = queries @ candidates.T
    return float(((own < S).float().mean(1) + 0.5 * (own == S).float().mean(1)).mean())


def _centred(x: Tensor) -> Tensor:
    return torch.nn.functional.normalize(x - x.mean(0), dim=1)
