"""Can another order of the rows restore misaligned pairs, and do both sides share anything?"""

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
_MANY = 1 << 15  # items of a side; with more, only shifts are tried
_STRUCTURED = 1024  # queries and candidates of `Structure`
_REFLECTIONS = 24
_QUERIES, _FEW_REFLECTIONS = 128, 6  # for all candidates of a large source
_TILE = 1 << 14  # candidates at a time
_PROBES = 512  # queries compared with their positives in an order


@dataclass(frozen=True)
class Order:
    """An order of the second side, and how far it brings positives above other items."""

    what: str  # `the second side shifted by 1 row`
    share_above: float  # mean share of the items above the positive; 0.5 by chance
    pairs: Rows = field(repr=False)  # (n, 2) positives in that order, perhaps only of the first items


@dataclass(frozen=True)
class Structure:
    """How far the best candidates of queries stand above those of reflected sides."""

    among_queries: float  # in deviations of the best candidates of single queries
    among_reflections: float  # in deviations of their mean over reflections: sides of few dimensions meet by accident
    needs: ClassVar[tuple[type, ...]] = (Items,)

    @classmethod
    def of(cls, patient: Patient, items: Items) -> Structure:
        """Compare both sides. Raises Missing without embeddings."""
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
        if max(items.whole) <= _MANY:  # an order is one of all rows: leaving a row out would move the others
            orders = _orders(relations.positives, *items.whole, source.image_ids, source.caption_ids)
            usable = [(what, _usable(vectors, pairs)) for what, pairs in orders]
            tried += [Order(what, _share_above(vectors, pairs), pairs) for what, pairs in usable if len(pairs) >= LEAST]
        return cls(min(tried, key=lambda order: order.share_above, default=None))


def _two_sides(patient: Patient, items: Items) -> Vectors:
    """Return the vectors of two sides. Raises Missing without embeddings of two sides."""
    source = items.source
    if source.images is None or source.captions is None or source.relations.one_set:
        raise Missing("it has no two sides of embeddings", "embeddings")
    return patient.part(Vectors)


def cross_structure(vectors: Vectors, is_large: bool) -> Structure:
    """Return how far the best candidates of queries are above those of reflected queries.

    Both sides are centred. Queries are reflected in random principal directions of both sides together: each direction
    stays as wide as it was, on either side, and no query knows its partner. Sides that share only wide directions stay
    near each other under reflections; a rotation would part them.

    Args:
        vectors: of both sides.
        is_large: whether a few queries meet all candidates, as the right partner may be anywhere.
    """
    first, second = map(np.flatnonzero, vectors.finite_rows())
    if is_large:
        first = np.random.default_rng(0).choice(first, min(len(first), _QUERIES), replace=False)
    else:
        first, second = first[:_STRUCTURED], second[:_STRUCTURED]
    queries, generator = _centred(_unit(vectors.first, first)), torch.Generator().manual_seed(0)
    directions, query_sets = _principal(queries, _centred(_unit(vectors.second, second[:_STRUCTURED]))), [queries]
    for _ in range(_FEW_REFLECTIONS if is_large else _REFLECTIONS):
        signs = torch.randint(0, 2, (len(directions),), generator=generator) * 2.0 - 1
        query_sets.append((queries @ directions * signs) @ directions.T)
    centre = _unit(vectors.second, second[:_TILE]).mean(0)
    best = torch.full((len(queries) * len(query_sets),), -torch.inf)
    for start in range(0, len(second), _TILE):
        candidates = _unit(vectors.second, second[start : start + _TILE]) - centre
        candidates = torch.nn.functional.normalize(candidates, dim=1)
        best = torch.maximum(best, (torch.cat(query_sets) @ candidates.T).amax(1))
    as_given, *reflected = best.view(len(query_sets), -1)
    means = torch.stack([x.mean() for x in reflected])
    above = float(as_given.mean() - means.mean())
    return Structure(above / max(float(reflected[0].std()), 1e-6), above / max(float(means.std()), 1e-6))


def _principal(first: Tensor, second: Tensor) -> Tensor:
    """Return the principal directions (d, d) of both sides together, as columns."""
    both = torch.cat([first, second]).double()
    directions: Tensor = torch.linalg.eigh(both.T @ both).eigenvectors.float()
    return directions


def best_shift(vectors: Vectors, pairs: Rows) -> Iterator[Order]:
    """Yield the shift of the pairs that brings both sides closest together.

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
    yield Order(
        f"the second side shifted by {shown} row{'s' if abs(shown) > 1 else ''}", _share_above(vectors, moved), moved
    )


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
    """Return the pairs whose rows are both finite and not zero."""
    first, second = vectors.finite_rows()
    return pairs[first[pairs[:, 0]] & second[pairs[:, 1]]]


def _share_above(vectors: Vectors, pairs: Rows) -> float:
    """Return the mean share of the items above the positive, over a sample of queries."""
    chosen = pairs[:: max(len(pairs) // _PROBES, 1)]
    candidates = _unit(vectors.second, np.flatnonzero(vectors.finite_rows()[1])[:_MOST])
    queries, positive = _unit(vectors.first, chosen[:, 0]), _unit(vectors.second, chosen[:, 1])
    stated = (queries * positive).sum(1, keepdim=True)
    S = queries @ candidates.T
    return float(((stated < S).float().mean(1) + 0.5 * (stated == S).float().mean(1)).mean())


def _unit(side: Tensor, rows: Rows) -> Tensor:
    return unit_rows_of(side, rows).float()


def _centred(x: Tensor) -> Tensor:
    return torch.nn.functional.normalize(x - x.mean(0), dim=1)
