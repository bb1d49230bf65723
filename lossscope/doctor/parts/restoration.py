"""Can another order of the rows restore misaligned pairs, and have the sides anything in common?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from lossscope.core.facts import Missing
from lossscope.core.types import Rows

from .alignment import LEAST
from .items import MOST, Items
from .patient import Patient
from .vectors import Vectors, unit_rows_of

_MOST = 4096  # pairs and candidates of a shift
_MANY = 1 << 15  # items of a side, up to which orders other than shifts are tried
_STRUCTURED = 1024  # queries and candidates whose structure is looked at
_REFLECTIONS = 24
_QUERIES, _FEW_REFLECTIONS = 128, 6  # where all candidates of a large source are looked at
_TILE = 1 << 14  # of these at a time
_PROBES = 512  # queries that are compared with their would-be positives


@dataclass(frozen=True)
class Order:
    """An order of the second side, and how far it brings positives above other items."""

    what: str  # `the second side shifted by 1 row`
    place: float  # mean share of the items above the positive; 0.5 by chance
    pairs: Rows = field(repr=False)  # (n, 2) positives in that order, perhaps of the first items alone


@dataclass(frozen=True)
class Structure:
    """How far the best candidates of queries stand above those of reflected sides."""

    among_queries: float  # in deviations of the best candidates of single queries
    among_reflections: float  # in deviations of their mean over reflections: sides of few dimensions meet by accident
    needs: ClassVar[tuple[type, ...]] = (Items,)

    @classmethod
    def of(cls, patient: Patient, items: Items) -> Structure:
        """Look at both sides. Raises Missing without embeddings."""
        return cross_structure(_two_sides(patient, items), items.is_sample and max(items.whole) > MOST)


@dataclass(frozen=True)
class Restoration:
    """The best of the other orders that were tried."""

    best: Order | None
    needs: ClassVar[tuple[type, ...]] = (Items,)

    @classmethod
    def of(cls, patient: Patient, items: Items) -> Restoration:
        """Try shifts, both layouts of several captions, and orders by id. Raises Missing without embeddings."""
        source, relations = items.source, items.source.relations
        vectors = _two_sides(patient, items)
        tried = list(best_shift(vectors, _usable(vectors, relations.positives)))
        if max(items.whole) <= _MANY:  # orders are of all rows: the others move where one is left out
            orders = _orders(relations.positives, *items.whole, source.image_ids, source.caption_ids)
            usable = [(what, _usable(vectors, pairs)) for what, pairs in orders]
            tried += [Order(what, _place(vectors, pairs), pairs) for what, pairs in usable if len(pairs) >= LEAST]
        return cls(min(tried, key=lambda one: one.place, default=None))


def _two_sides(patient: Patient, items: Items) -> Vectors:
    """Return the vectors of two sides. Raises Missing without."""
    source = items.source
    if source.images is None or source.captions is None or source.relations.one_set:
        raise Missing("it has no two sides of embeddings", "embeddings")
    return patient.part(Vectors)


def cross_structure(vectors: Vectors, is_large: bool) -> Structure:
    """Return how far above chance the best candidates of queries are, against those of reflected queries.

    Both sides are centred. Queries are reflected in some of the principal directions of both sides together, drawn by
    lot: each direction is as wide as it was, on either side, and no query knows its partner. Sides that share wide
    directions and nothing else are near each other after that, too, which a rotation would not leave.

    Args:
        vectors: of both sides.
        is_large: whether some queries meet all candidates, as the right partner of a query may be anywhere.
    """
    first, second = map(np.flatnonzero, vectors.finite_rows())
    if is_large:
        first = np.random.default_rng(0).choice(first, min(len(first), _QUERIES), replace=False)
    else:
        first, second = first[:_STRUCTURED], second[:_STRUCTURED]
    queries, generator = _centred(_unit(vectors.first, first)), torch.Generator().manual_seed(0)
    directions, every = _principal(queries, _centred(_unit(vectors.second, second[:_STRUCTURED]))), [queries]
    for _ in range(_FEW_REFLECTIONS if is_large else _REFLECTIONS):
        signs = torch.randint(0, 2, (len(directions),), generator=generator) * 2.0 - 1
        every.append((queries @ directions * signs) @ directions.T)
    centre = _unit(vectors.second, second[:_TILE]).mean(0)
    best = torch.full((len(queries) * len(every),), -torch.inf)
    for start in range(0, len(second), _TILE):
        candidates = _unit(vectors.second, second[start : start + _TILE]) - centre
        candidates = torch.nn.functional.normalize(candidates, dim=1)
        best = torch.maximum(best, (torch.cat(every) @ candidates.T).amax(1))
    own, *reflected = best.view(len(every), -1)
    means = torch.stack([x.mean() for x in reflected])
    above = float(own.mean() - means.mean())
    return Structure(above / max(float(reflected[0].std()), 1e-6), above / max(float(means.std()), 1e-6))


def _principal(first: Tensor, second: Tensor) -> Tensor:
    """Return the principal directions (d, d) of both sides together, as columns."""
    both = torch.cat([first, second]).double()
    directions: Tensor = torch.linalg.eigh(both.T @ both).eigenvectors.float()
    return directions


def best_shift(vectors: Vectors, pairs: Rows) -> Iterator[Order]:
    """Yield the shift of the pairs' order that brings both sides together best.

    Args:
        vectors: of both sides.
        pairs: (n, 2) positives, pair i and i + 1 neighbours in their file.
    """
    n = min(len(pairs), _MOST)
    if n < LEAST:
        return
    x, y = _centred(_unit(vectors.first, pairs[:n, 0])), _centred(_unit(vectors.second, pairs[:n, 1]))
    product = torch.fft.ifft(torch.fft.fft(x, dim=0).conj() * torch.fft.fft(y, dim=0), dim=0).real.sum(1)
    product[0] = -torch.inf
    shift = int(product.argmax())
    moved = np.stack([pairs[:n, 0], np.roll(pairs[:n, 1], -shift)], 1)
    shown = shift if shift <= n // 2 else shift - n
    yield Order(f"the second side shifted by {shown} row{'s' if abs(shown) > 1 else ''}", _place(vectors, moved), moved)


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


def _usable(vectors: Vectors, pairs: Rows) -> Rows:
    """Return the pairs of which both rows are finite and not zero."""
    first, second = vectors.finite_rows()
    return pairs[first[pairs[:, 0]] & second[pairs[:, 1]]]


def _place(vectors: Vectors, pairs: Rows) -> float:
    """Return the mean share of the items above the positive, over some queries."""
    chosen = pairs[:: max(len(pairs) // _PROBES, 1)]
    candidates = _unit(vectors.second, np.flatnonzero(vectors.finite_rows()[1])[:_MOST])
    queries, positive = _unit(vectors.first, chosen[:, 0]), _unit(vectors.second, chosen[:, 1])
    own = (queries * positive).sum(1, keepdim=True)
    S = queries @ candidates.T
    return float(((own < S).float().mean(1) + 0.5 * (own == S).float().mean(1)).mean())


def _unit(side: Tensor, rows: Rows) -> Tensor:
    return unit_rows_of(side, rows).float()


def _centred(x: Tensor) -> Tensor:
    return torch.nn.functional.normalize(x - x.mean(0), dim=1)
