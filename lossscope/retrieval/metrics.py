"""Ranks of the positives of every query, by counting: from a matrix, or from tiles of one that is never built."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from lossscope.core.batches import Batch
from lossscope.core.pair import Pair
from lossscope.core.relations import Relations
from lossscope.core.sides import plural
from lossscope.core.types import Direction, Progress, Rows, SamplingMode
from lossscope.engine.blocks.matrix import TiledMatrix
from lossscope.engine.blocks.sparse_mask import SparseMask
from lossscope.errors import InputError

from .measures import NEVER
from .ranks import RankCounts, count_ranks
from .results import Ranks, Retrieval
from .row_ranks import RankedRows, rank_rows

_MOST_COUNTED = 64  # positives of a query; sorting a row takes as long as counting for so many


def retrieve(
    S: Tensor | Pair[Tensor], related: Relations | Rows, cutoffs: Sequence[int] = ()
) -> tuple[Retrieval, Retrieval]:
    """Return both directions of similarities S (N, M); of one set there is one direction, which is returned twice.

    Items without a positive are no queries (they stay candidates). An item of one set is no candidate of itself.

    Args:
        S: (N, M), or a Pair of (N, M) and (M, N) of a model whose directions differ. In a Pair NaN marks a pair that
            the model left unscored: it ranks below all others, and a query with no scored positive has the last rank.
        related: positives, or (M,) row of the image that each caption describes.
        cutoffs: k of the measures; without any, only ranks and the ten best are computed.

    Raises:
        InputError: there are no positives, or S of one matrix has NaN.
    """
    both = S if isinstance(S, Pair) else Pair(S, S.T)
    if both.t2i.data_ptr() != both.i2t.data_ptr():
        both = both.map(lambda scores: scores.nan_to_num(nan=-torch.inf))
    queries = _by_direction(related, len(both.i2t))
    if bool(both.i2t.isnan().any()):
        raise InputError(
            "similarities to rank must be numbers; got NaN. Look for NaN in the embeddings, or for pairs "
            "without a score"
        )

    def of_direction(direction: Direction) -> Retrieval:
        scores, relations = (both.i2t, queries.i2t) if direction == "i2t" else (both.t2i, queries.t2i)
        return _rank_all(relations, lambda rows: scores[rows.to(scores.device)].contiguous(), cutoffs)

    first = of_direction("i2t")
    return first, first if queries.i2t.one_set else of_direction("t2i")


def retrieve_by_tiles(
    matrix: TiledMatrix, related: Relations | Rows, progress: Progress | None = None, cutoffs: Sequence[int] = ()
) -> tuple[Retrieval, Retrieval]:
    """Return what `retrieve` does of S (N, M), a product of vectors, from one pass over tiles of it.

    Directions whose queries have very many positives are ranked from whole rows, some queries at a time.
    """
    queries = _by_direction(related, matrix.shape[0])
    counted = queries.map(lambda relations: int(relations.number_of_positives.max(initial=0)) <= _MOST_COUNTED)
    if queries.i2t.one_set:
        counted = Pair(counted.i2t, False)

    def report(done: int, total: int) -> None:
        if progress:
            progress(f"ranking {matrix.embedded.name}", done, total)

    def of_direction(direction: Direction) -> Retrieval:
        relations, count = (queries.i2t, counts.i2t) if direction == "i2t" else (queries.t2i, counts.t2i)
        if count is not None:
            return _from_counts(count, matrix, relations, direction, cutoffs)
        return _rank_all(relations, lambda rows: matrix.whole_rows(rows, direction), cutoffs, report)

    counts: Pair[RankCounts | None] = Pair(None, None)
    if counted.i2t or counted.t2i:
        counts = count_ranks(matrix, _sparse_mask(queries.i2t), counted, report)
    first = of_direction("i2t")
    return first, first if queries.i2t.one_set else of_direction("t2i")


def _by_direction(related: Relations | Rows, first: int) -> Pair[Relations]:
    """Return the relations of both directions, queries first. Raises InputError when nothing is a positive."""
    relations = related if isinstance(related, Relations) else Relations.of_captions(related, first)
    if not relations.number_of_positives.any():
        if relations.sides.is_image_text:
            raise InputError("retrieval needs captions; got none")
        raise InputError(f"retrieval needs {plural(relations.sides.first)} with a positive; got none")
    return Pair(relations, relations.t())


def _sparse_mask(relations: Relations) -> SparseMask:
    """Return the positives of all items as a list, and with one set the items themselves as no candidates."""
    mode: SamplingMode = "classes" if relations.one_set else "groups"
    batch = Batch(np.arange(relations.first), np.arange(relations.second), mode)
    return SparseMask.of(batch, relations, "keep")


def _rank_all(
    queries: Relations,
    scores: Callable[[Tensor], Tensor],
    cutoffs: Sequence[int],
    report: Callable[[int, int], None] | None = None,
) -> Retrieval:
    """Rank the items of the first side that have a positive, from whole rows.

    Args:
        queries: relations whose first side are queries.
        scores: (b,) rows -> (b, c) new memory.
        cutoffs: k of the measures.
        report: called with the number of queries so far, and of all.
    """
    with_positive = torch.from_numpy(np.flatnonzero(queries.number_of_positives))
    parts, done = [], 0
    for rows in _parts(with_positive, queries.second):
        parts.append(_rank_some(queries, rows, scores(rows), bool(cutoffs)).result(cutoffs))
        done += len(rows)
        if report:
            report(done, len(with_positive))
    return Retrieval.join(parts)


def _rank_some(queries: Relations, rows: Tensor, S: Tensor, positions: bool) -> RankedRows:
    """Rank the queries `rows` by their scores S (b, c); overwrite those of items with themselves."""
    match = torch.from_numpy(queries.is_positive(rows.numpy(), np.arange(queries.second))).to(S.device)
    if queries.one_set:
        S[torch.arange(len(rows)), rows] = -torch.inf
    return rank_rows(S, match, queries.second - int(queries.one_set), positions)


def _from_counts(
    counts: RankCounts, matrix: TiledMatrix, relations: Relations, direction: Direction, cutoffs: Sequence[int]
) -> Retrieval:
    """Build ranks and hits from the ranks of the positives; queries with ties or doubt are ranked from whole rows."""
    is_positive = counts.columns >= 0
    queries = is_positive.any(1).nonzero()[:, 0]
    positions = counts.above.where(is_positive, NEVER)
    top = min(10, relations.second)
    hits = torch.zeros(len(is_positive), top + 1, dtype=torch.bool, device=is_positive.device)
    hits.scatter_(1, positions.clamp(max=top), True)
    best, relevant = positions.amin(1), is_positive.sum(1)
    ties, mixed = torch.zeros_like(best), torch.zeros_like(best, dtype=torch.bool)
    needs_row = ((counts.equal > 0) & is_positive).any(1) | counts.doubtful
    for rows in _parts((needs_row & is_positive.any(1)).nonzero()[:, 0].cpu(), relations.second):
        ranked = _rank_some(relations, rows, matrix.whole_rows(rows, direction), bool(cutoffs))
        best[rows], ties[rows], hits[rows, :top] = ranked.ranks, ranked.ties, ranked.hits
        if ranked.positions is not None and ranked.mixed_ties is not None:
            positions[rows] = NEVER
            positions[rows, : ranked.positions.shape[1]] = ranked.positions
            mixed[rows] = ranked.mixed_ties
    result = RankedRows(best[queries], ties[queries], hits[queries, :top], relevant[queries])
    if cutoffs:
        result = replace(result, positions=positions[queries].sort(dim=1).values, mixed_ties=mixed[queries])
    return result.result(cutoffs)


def _parts(rows: Tensor, columns: int) -> Iterator[Tensor]:
    """Yield rows in parts of about 8 million similarities; no part is empty."""
    yield from torch.split(rows, _rows_per_tile(columns)) if len(rows) else ()


def _rows_per_tile(columns: int) -> int:
    """Return the number of rows of a tile of about 8 million similarities."""
    return max(1, 8_000_000 // max(columns, 1))


__all__ = ["Ranks", "Retrieval", "retrieve", "retrieve_by_tiles"]
