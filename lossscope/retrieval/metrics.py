"""Ranks of the best positive of every query, by counting: from a matrix, or from tiles of one that is never held."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lossscope.core.batches import Batch, Rows
from lossscope.core.pair import Pair
from lossscope.engine.tiled.matrix import TiledMatrix
from lossscope.engine.tiled.sparse_mask import SparseMask
from lossscope.errors import InputError

from .ranks import RankCounts, count_ranks

Ranks = npt.NDArray[np.int64]
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Retrieval:
    """One direction. ranks: (q,) 0-based rank of the best positive = candidates strictly above it.

    ties: (q,) non-relevant candidates exactly equal to the best positive (they do not worsen its rank).
    hits: (q, 10) bool, relevance of the ten best candidates, earlier rows first among equals. relevant: (q,) number.
    """

    ranks: Ranks
    ties: Ranks
    hits: npt.NDArray[np.bool_]
    relevant: Ranks

    def recall(self, k: int) -> float:
        """R@k in per cent: queries whose best positive is among the k best."""
        return 100.0 * float((self.ranks < k).mean())

    def average_precision(self, k: int, divisor: str = "relevant") -> float:
        """mAP@k in [0, 1], the mean of `precisions`. Raises InputError where they do."""
        return float(self.precisions(k, divisor).mean())

    def precisions(self, k: int, divisor: str = "relevant") -> npt.NDArray[np.float64]:
        """AP@k of every query (q,). divisor `relevant`: min(k, |P|), the standard; `hits`: hits inside the k (E10).

        Raises InputError unless 1 <= k <= 10, and for another divisor.
        """
        if not 1 <= k <= 10 or divisor not in ("relevant", "hits"):
            raise InputError(f"k must be 1..10 and divisor relevant or hits; got {k} and {divisor!r}")
        hits = self.hits[:, :k].astype(float)
        count_ranks = np.arange(1, hits.shape[1] + 1)
        found = (np.cumsum(hits, axis=1) / count_ranks * hits).sum(1)
        by = np.minimum(k, self.relevant) if divisor == "relevant" else hits.sum(1)
        each: npt.NDArray[np.float64] = found / np.maximum(by, 1)
        return each

    def statistics(self) -> dict[str, float]:
        """medr = floor(median) + 1 and meanr = mean + 1, as published; MRR of the best positive."""
        return {
            **{f"R@{k}": self.recall(k) for k in (1, 5, 10)},
            "medr": float(np.floor(np.median(self.ranks)) + 1),
            "meanr": float(self.ranks.mean() + 1),
            "MRR": float((1 / (self.ranks + 1)).mean()),
            "mAP@5": self.average_precision(5),
            "mAP@5_hits": self.average_precision(5, "hits"),
            "ties": float((self.ties > 0).sum()),
        }


def retrieve(S: Tensor | Pair[Tensor], caption_image: Rows) -> tuple[Retrieval, Retrieval]:
    """i2t and t2i of similarities S (N, M), caption c belonging to image caption_image[c].

    A Pair of (N, M) and (M, N) is of a model whose directions differ: NaN there are pairs that it left unscored, below
    all others, and a query whose positives all are has the last rank. Images without a caption are no queries (they
    stay candidates). Raises InputError when none has one.
    """
    both = S if isinstance(S, Pair) else Pair(S, S.T)
    if both.t2i.data_ptr() != both.i2t.data_ptr():
        both = both.map(lambda one: one.nan_to_num(nan=-torch.inf))
    S, turned = both
    owner = torch.from_numpy(np.ascontiguousarray(caption_image)).to(S.device)
    images: Tensor = torch.unique(owner)
    if not len(images):
        raise InputError("retrieval needs captions; got none")
    if bool(S.isnan().any()):
        raise InputError("similarities to rank must be numbers; got NaN. The embeddings are broken or unscored")
    i2t = [_rank(S[rows], rows[:, None] == owner[None, :]) for rows in torch.split(images, _rows(S.shape[1]))]
    columns = torch.split(torch.arange(len(owner), device=S.device), _rows(S.shape[0]))
    every = torch.arange(S.shape[0], device=S.device)
    t2i = [_rank(turned[part].contiguous(), owner[part][:, None] == every[None, :]) for part in columns]
    return _joined(i2t), _joined(t2i)


def retrieve_by_tiles(
    matrix: TiledMatrix, caption_image: Rows, progress: Progress | None = None
) -> tuple[Retrieval, Retrieval]:
    """The same of S (N, M) that is a product of vectors, from one pass over tiles of it."""
    batch = Batch(np.arange(matrix.shape[0]), np.arange(matrix.shape[1]), "images")
    relation = SparseMask.of(batch, caption_image, "keep")

    def tick(done: int, total: int) -> None:
        if progress:
            progress(f"ranking {matrix.embedded.name}", done, total)

    found = count_ranks(matrix, relation, tick)
    return _told(found.i2t, matrix, relation), _told(found.t2i, matrix, relation.t())


def _told(ranked: RankCounts, matrix: TiledMatrix, relation: SparseMask) -> Retrieval:
    """Ranks and hits from the place of every positive; queries of which that is not enough from their whole row."""
    there = ranked.columns >= 0
    asked = there.any(1).nonzero()[:, 0]
    far = torch.iinfo(torch.int64).max
    above = ranked.above.where(there, far)
    top = min(10, relation.candidates)
    hits = torch.zeros(len(there), top + 1, dtype=torch.bool, device=there.device)
    hits.scatter_(1, above.clamp(max=top), True)
    best, relevant = above.amin(1), there.sum(1)
    ties = torch.zeros_like(best)
    again = ((ranked.level > 0) & there).any(1) | ranked.doubtful
    for part in torch.split((again & there.any(1)).nonzero()[:, 0].cpu(), _rows(relation.candidates)):
        S = matrix.lines(part, relation.direction)
        best[part], ties[part], hits[part, :top], _ = _rank(S, relation.mask(part).match.to(S.device))
    columns = (best[asked], ties[asked], hits[asked, :top], relevant[asked])
    return _joined([columns])


def _rank(S: Tensor, match: Tensor) -> tuple[Tensor, ...]:
    """Queries as rows: rank of the best positive, ties with it, hits among the ten best, number relevant.

    What is −inf was not scored: no hit; a query whose positives all are has the last rank, and no ties.
    """
    best = S.masked_fill(~match, -torch.inf).amax(1, keepdim=True)
    scored = best[:, 0] > -torch.inf
    count_ranks = torch.gt(S, best).sum(1).where(scored, S.shape[1] - 1)
    ties = ((best == S) & ~match).sum(1).where(scored, 0)
    top = min(10, S.shape[1])
    order = S.argsort(dim=1, descending=True, stable=True)[:, :top] if S.shape[1] <= 64 else _top(S, top)
    hits = match.gather(1, order) & S.gather(1, order).gt(-torch.inf)
    return count_ranks, ties, hits, match.sum(1)


def _top(S: Tensor, k: int) -> Tensor:
    """Columns of the k largest of each row, earlier columns first among equals."""
    slack = min(4 * k, S.shape[1])
    values, columns = S.topk(slack, dim=1)
    if bool((values[:, k - 1] == values[:, -1]).any()):
        return S.argsort(dim=1, descending=True, stable=True)[:, :k]
    by_column = columns.argsort(dim=1)
    values, columns = values.gather(1, by_column), columns.gather(1, by_column)
    return columns.gather(1, values.argsort(dim=1, descending=True, stable=True))[:, :k]


def _joined(parts: Sequence[tuple[Tensor, ...]]) -> Retrieval:
    count_ranks, ties, hits, relevant = (torch.cat(column).cpu().numpy() for column in zip(*parts, strict=True))
    return Retrieval(count_ranks, ties, hits, relevant)


def _rows(columns: int) -> int:
    """Rows of a tile of about 8 million similarities."""
    return max(1, 8_000_000 // max(columns, 1))
