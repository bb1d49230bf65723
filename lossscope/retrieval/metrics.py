"""Ranks of the best positive of every query, by counting: from a matrix, or from tiles of one that is never built."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lossscope.core.batches import Batch
from lossscope.core.pair import Pair
from lossscope.core.types import Progress, Rows
from lossscope.engine.tiled.matrix import TiledMatrix
from lossscope.engine.tiled.sparse_mask import SparseMask
from lossscope.errors import InputError

from .ranks import RankCounts, count_ranks

Ranks = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Retrieval:
    """Ranks of the queries of one direction."""

    ranks: Ranks  # (q,) 0-based rank of the best positive: the number of candidates strictly above it
    ties: Ranks  # (q,) non-relevant candidates exactly equal to the best positive; they do not worsen its rank
    hits: npt.NDArray[np.bool_]  # (q, 10) relevance of the ten best candidates, earlier rows first among equals
    relevant: Ranks  # (q,) number of positives

    def recall(self, k: int) -> float:
        """Return R@k in per cent: the share of queries whose best positive is among the k best candidates."""
        return 100.0 * float((self.ranks < k).mean())

    def average_precision(self, k: int, divisor: str = "relevant") -> float:
        """Return mAP@k in [0, 1], the mean of `precisions`. Raises InputError where they do."""
        return float(self.precisions(k, divisor).mean())

    def precisions(self, k: int, divisor: str = "relevant") -> npt.NDArray[np.float64]:
        """Return AP@k (q,) of every query.

        Args:
            k: 1..10.
            divisor: `relevant`: min(k, |P|), the standard; `hits`: number of positives among the k best (E10).

        Raises:
            InputError: unless 1 <= k <= 10, and for another divisor.
        """
        if not 1 <= k <= 10 or divisor not in ("relevant", "hits"):
            raise InputError(f"k must be 1..10 and divisor relevant or hits; got {k} and {divisor!r}")
        hits = self.hits[:, :k].astype(float)
        positions = np.arange(1, hits.shape[1] + 1)
        sums = (np.cumsum(hits, axis=1) / positions * hits).sum(1)
        divisors = np.minimum(k, self.relevant) if divisor == "relevant" else hits.sum(1)
        precisions: npt.NDArray[np.float64] = sums / np.maximum(divisors, 1)
        return precisions

    def statistics(self, floor_median: bool = True) -> dict[str, float]:
        """R@k; medr = floor(median) + 1 and meanr = mean + 1, as published; MRR of the best positive, mAP@5, ties.

        Args:
            floor_median: round the median down, as the authors of image-text models do; those of MMT and CE do not.
        """
        median = float(np.median(self.ranks))
        return {
            **{f"R@{k}": self.recall(k) for k in (1, 5, 10)},
            "medr": (math.floor(median) if floor_median else median) + 1.0,
            "meanr": float(self.ranks.mean() + 1),
            "MRR": float((1 / (self.ranks + 1)).mean()),
            "mAP@5": self.average_precision(5),
            "mAP@5_hits": self.average_precision(5, "hits"),
            "ties": float((self.ties > 0).sum()),
        }


def retrieve(S: Tensor | Pair[Tensor], caption_image: Rows) -> tuple[Retrieval, Retrieval]:
    """Return i2t and t2i of similarities S (N, M), caption c belonging to image caption_image[c].

    Images without a caption are no queries (they stay candidates).

    Args:
        S: (N, M), or a Pair of (N, M) and (M, N) of a model whose directions differ. In a Pair NaN marks a pair that
            the model left unscored: it ranks below all others, and a query with no scored positive has the last rank.
        caption_image: (M,) row of the image that each caption describes.

    Raises:
        InputError: there are no captions, or S of one matrix has NaN.
    """
    both = S if isinstance(S, Pair) else Pair(S, S.T)
    if both.t2i.data_ptr() != both.i2t.data_ptr():
        both = both.map(lambda scores: scores.nan_to_num(nan=-torch.inf))
    S, transposed = both
    owner = torch.from_numpy(np.ascontiguousarray(caption_image)).to(S.device)
    images: Tensor = torch.unique(owner)
    if not len(images):
        raise InputError("retrieval needs captions; got none")
    if bool(S.isnan().any()):
        raise InputError("similarities to rank must be numbers; got NaN. The embeddings are broken or unscored")
    i2t = [_rank(S[rows], rows[:, None] == owner[None, :]) for rows in torch.split(images, _rows_per_tile(S.shape[1]))]
    captions = torch.split(torch.arange(len(owner), device=S.device), _rows_per_tile(S.shape[0]))
    candidates = torch.arange(S.shape[0], device=S.device)
    t2i = [_rank(transposed[rows].contiguous(), owner[rows][:, None] == candidates[None, :]) for rows in captions]
    return _concatenate(i2t), _concatenate(t2i)


def retrieve_by_tiles(
    matrix: TiledMatrix, caption_image: Rows, progress: Progress | None = None
) -> tuple[Retrieval, Retrieval]:
    """Return what `retrieve` does of S (N, M), a product of vectors, from one pass over tiles of it."""
    batch = Batch(np.arange(matrix.shape[0]), np.arange(matrix.shape[1]), "images")
    mask = SparseMask.of(batch, caption_image, "keep")

    def report(done: int, total: int) -> None:
        if progress:
            progress(f"ranking {matrix.embedded.name}", done, total)

    counts = count_ranks(matrix, mask, report)
    return _build_retrieval(counts.i2t, matrix, mask), _build_retrieval(counts.t2i, matrix, mask.t())


def _build_retrieval(counts: RankCounts, matrix: TiledMatrix, mask: SparseMask) -> Retrieval:
    """Build ranks and hits from the ranks of the positives; queries with ties or doubt are ranked from whole rows."""
    is_positive = counts.columns >= 0
    queries = is_positive.any(1).nonzero()[:, 0]
    last = torch.iinfo(torch.int64).max
    above = counts.above.where(is_positive, last)
    top = min(10, mask.candidates)
    hits = torch.zeros(len(is_positive), top + 1, dtype=torch.bool, device=is_positive.device)
    hits.scatter_(1, above.clamp(max=top), True)
    best, relevant = above.amin(1), is_positive.sum(1)
    ties = torch.zeros_like(best)
    needs_row = ((counts.equal > 0) & is_positive).any(1) | counts.doubtful
    for rows in torch.split((needs_row & is_positive.any(1)).nonzero()[:, 0].cpu(), _rows_per_tile(mask.candidates)):
        S = matrix.whole_rows(rows, mask.direction)
        best[rows], ties[rows], hits[rows, :top], _ = _rank(S, mask.mask(rows).match.to(S.device))
    columns = (best[queries], ties[queries], hits[queries, :top], relevant[queries])
    return _concatenate([columns])


def _rank(S: Tensor, match: Tensor) -> tuple[Tensor, ...]:
    """Return the rank of the best positive, its ties, hits among the ten best, and number of positives of each row.

    −inf marks an unscored pair, which is no hit; a query with no scored positive has the last rank and no ties.
    """
    best = S.masked_fill(~match, -torch.inf).amax(1, keepdim=True)
    scored = best[:, 0] > -torch.inf
    ranks = torch.gt(S, best).sum(1).where(scored, S.shape[1] - 1)
    ties = ((best == S) & ~match).sum(1).where(scored, 0)
    top = min(10, S.shape[1])
    order = S.argsort(dim=1, descending=True, stable=True)[:, :top] if S.shape[1] <= 64 else _top_columns(S, top)
    hits = match.gather(1, order) & S.gather(1, order).gt(-torch.inf)
    return ranks, ties, hits, match.sum(1)


def _top_columns(S: Tensor, k: int) -> Tensor:
    """Return the columns of the k largest entries of each row, earlier columns first among equals."""
    slack = min(4 * k, S.shape[1])
    values, columns = S.topk(slack, dim=1)
    if bool((values[:, k - 1] == values[:, -1]).any()):
        return S.argsort(dim=1, descending=True, stable=True)[:, :k]
    by_column = columns.argsort(dim=1)
    values, columns = values.gather(1, by_column), columns.gather(1, by_column)
    return columns.gather(1, values.argsort(dim=1, descending=True, stable=True))[:, :k]


def _concatenate(parts: Sequence[tuple[Tensor, ...]]) -> Retrieval:
    ranks, ties, hits, relevant = (torch.cat(column).cpu().numpy() for column in zip(*parts, strict=True))
    return Retrieval(ranks, ties, hits, relevant)


def _rows_per_tile(columns: int) -> int:
    """Return the number of rows of a tile of about 8 million similarities."""
    return max(1, 8_000_000 // max(columns, 1))
