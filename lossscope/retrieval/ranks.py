"""The rank of every positive, by counting in tiles: one product for both directions, and S is never built whole."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lossscope.core.pair import Pair
from lossscope.core.types import OnStep
from lossscope.engine.blocks.matrix import MatrixBlocks, TiledMatrix, tile_size
from lossscope.engine.blocks.sparse_mask import SparseMask
from lossscope.engine.fold import Execution, FoldedRows, fold
from lossscope.objectives.counting.extremes import RankFold
from lossscope.objectives.counting.fold import Fold
from lossscope.objectives.counting.rows import QueryPositives
from lossscope.probes.views.view import BatchShape

_RANKS = "ranks"


@dataclass(frozen=True)
class RankCounts:
    """Candidates above and equal to each positive of one direction; q queries with at most p positives."""

    above: Tensor  # (q, p) candidates strictly above each positive
    equal: Tensor  # (q, p) candidates equal to each positive, itself left out
    columns: Tensor  # (q, p) columns of the positives, −1 where a query has fewer
    doubtful: Tensor  # (q,) bool, queries to be ranked from whole rows: a positive has other last bits in its tile


def count_ranks(
    matrix: TiledMatrix, mask: SparseMask, wanted: Pair[bool], on_tile: OnStep | None = None
) -> Pair[RankCounts | None]:
    """Return the exact counts of both directions of S (n, m): positives and negatives are compared within one product.

    Args:
        matrix: S in tiles.
        mask: of the direction i2t; entries that are not valid count in no row.
        wanted: directions to count; the others are None.
        on_tile: called after each band of tiles.
    """
    blocks = MatrixBlocks(matrix, *tile_size(matrix.example.device))
    masks = {
        entries.direction: entries for entries, is_wanted in zip((mask, mask.t()), wanted, strict=True) if is_wanted
    }
    shapes = [
        BatchShape(1, direction, torch.arange(positives.queries), torch.arange(positives.candidates)[None])
        for direction, positives in masks.items()
    ]
    folded = fold(blocks, mask, shapes, _ranks, Execution(on_band=on_tile))
    counts = {rows.shape.direction: _rank_counts(rows, masks[rows.shape.direction], mask) for rows in folded}
    return Pair(counts.get("i2t"), counts.get("t2i"))


def _ranks(mask: SparseMask, positives: QueryPositives) -> dict[str, Fold]:
    """Return what is kept: the negatives above each positive."""
    similarities = positives.similarities
    return {_RANKS: RankFold(similarities.where(_columns(mask, similarities.device) >= 0, torch.inf))}


def _rank_counts(rows: FoldedRows, positives: SparseMask, mask: SparseMask) -> RankCounts:
    """Return the counts among negatives, and those among the other positives of a query.

    Args:
        rows: of a direction.
        positives: the mask of the direction.
        mask: of i2t.
    """
    kept: RankFold = rows.folds[_RANKS]
    values, columns = kept.values, _columns(positives, kept.above.device)
    s, others = values.where(columns >= 0, -torch.inf)[:, None, :], values[:, :, None]
    above = kept.above.long() + (s > others).sum(2)
    equal = (kept.at_least - kept.above).long() + (s == others).sum(2) - (columns >= 0).long()
    doubtful = torch.zeros(len(values), dtype=torch.bool, device=values.device)
    entries = mask.positives.rows if rows.dim == 1 else mask.positives.columns
    doubtful[entries[rows.differing]] = True
    return RankCounts(above, equal, columns, doubtful)


def _columns(mask: SparseMask, device: torch.device) -> Tensor:
    """(q, p) columns of the positives of each query, −1 where it has fewer."""
    columns: Tensor = mask.by_query(mask.positives.columns.to(device).double())
    return columns.where(columns >= 0, -1.0).long()
