"""The retrieval protocol: ranks by counting, recalls, average precision, ties, folds, ensembles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from .errors import InputError
from .frames import SUMMARY
from .sources.base import Embedded, Rows
from .weights import Pair

Ranks = npt.NDArray[np.int64]
_UNITS = {"R": "%", "m": "rank", "M": "1", "t": "queries"}


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
        """mAP@k in [0, 1]. divisor `relevant`: min(k, |P|), the standard; `hits`: hits inside the k (E10).

        Raises InputError unless 1 <= k <= 10, and for another divisor.
        """
        if not 1 <= k <= 10 or divisor not in ("relevant", "hits"):
            raise InputError(f"k must be 1..10 and divisor relevant or hits; got {k} and {divisor!r}")
        hits = self.hits[:, :k].astype(float)
        ranks = np.arange(1, hits.shape[1] + 1)
        found = (np.cumsum(hits, axis=1) / ranks * hits).sum(1)
        by = np.minimum(k, self.relevant) if divisor == "relevant" else hits.sum(1)
        return float((found / np.maximum(by, 1)).mean())

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
    all others. Images without a caption are no queries (they stay candidates). Raises InputError when none has one.
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


def evaluate(embedded: Sequence[Embedded], folds: int = 1) -> pd.DataFrame:
    """Summary rows (probe `recall`) of one source, or of the mean of several sources' similarities.

    folds > 1: the images are cut in that many equal runs in file order and the numbers averaged (COCO 1K is 5
    folds of 5,000); std is then over folds. Raises InputError when sources hold different items.
    """
    first = embedded[0]
    for other in embedded[1:]:
        if other.caption_ids != first.caption_ids or not np.array_equal(other.caption_image, first.caption_image):
            raise InputError(f"sources of an ensemble must hold the same items; {first.name} and {other.name} differ")
    name = first.name if len(embedded) == 1 else "mean of " + ", ".join(e.name for e in embedded)
    found = [_directions(*retrieve(S, owner)) for S, owner in _folds(embedded, folds)]
    seed = first.seed if len(embedded) == 1 else None
    rows = []
    for direction, statistic in found[0]:
        values = np.array([one[direction, statistic] for one in found])
        rows.append({
            "source": name, "objective": first.objective if len(embedded) == 1 else None, "direction": direction,
            "probe": "recall", "statistic": statistic, "mean": float(values.mean()),
            "std": float(values.std()) if folds > 1 else np.nan, "n": _n(first, direction, folds),
            "n_defined": _n(first, direction, folds),
            "unit": "%" if statistic == "rsum" else _UNITS[statistic[0]], "convention": None, "eps": np.nan,
            "batch_size": np.nan, "sampling": f"{folds} folds" if folds > 1 else _split(first), "seed": seed,
        })  # fmt: skip
    return pd.DataFrame(rows, columns=list(SUMMARY))


def numbers(S: Pair[Tensor], caption_image: Rows) -> dict[str, float]:
    """`i2t_R@1` ... `t2i_ties`, `rsum` of both directions of S: what training looks at after each epoch."""
    found = _directions(*retrieve(S, caption_image))
    return {name if direction == "both" else f"{direction}_{name}": v for (direction, name), v in found.items()}


def _directions(i2t: Retrieval, t2i: Retrieval) -> dict[tuple[str, str], float]:
    found = {("i2t", k): v for k, v in i2t.statistics().items()}
    found |= {("t2i", k): v for k, v in t2i.statistics().items()}
    found["both", "rsum"] = sum(found[d, f"R@{k}"] for d in ("i2t", "t2i") for k in (1, 5, 10))
    return found


def _rank(S: Tensor, match: Tensor) -> tuple[Tensor, ...]:
    """Queries as rows: rank of the best positive, ties with it, hits among the ten best, number relevant."""
    best = S.masked_fill(~match, -torch.inf).amax(1, keepdim=True)
    ranks = torch.gt(S, best).sum(1)
    ties = ((best == S) & ~match).sum(1)
    top = min(10, S.shape[1])
    order = S.argsort(dim=1, descending=True, stable=True)[:, :top] if S.shape[1] <= 64 else _top(S, top)
    return ranks, ties, match.gather(1, order), match.sum(1)


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
    ranks, ties, hits, relevant = (torch.cat(column).cpu().numpy() for column in zip(*parts, strict=True))
    return Retrieval(ranks, ties, hits, relevant)


def _folds(embedded: Sequence[Embedded], folds: int) -> Iterator[tuple[Pair[Tensor], Rows]]:
    first = embedded[0]
    n = len(first.image_ids)
    if folds < 1 or n % folds:
        raise InputError(f"--folds must divide the number of images, {n}; got {folds}")
    size = n // folds
    for fold in range(folds):
        images = np.arange(fold * size, (fold + 1) * size, dtype=np.int64)
        captions = np.flatnonzero((first.caption_image >= images[0]) & (first.caption_image <= images[-1]))
        S = torch.stack([e.block(images, captions) for e in embedded]).mean(0) if len(embedded) > 1 else None
        yield first.both(images, captions) if S is None else Pair(S, S.T), first.caption_image[captions] - images[0]


def _split(embedded: Embedded) -> str | None:
    return f"{embedded.split} split" if embedded.split else None


def _n(embedded: Embedded, direction: str, folds: int) -> int:
    if folds > 1:
        return folds
    return len(embedded.caption_image) if direction == "t2i" else len(np.unique(embedded.caption_image))


def _rows(columns: int) -> int:
    """Rows of a tile of about 8 million similarities."""
    return max(1, 8_000_000 // max(columns, 1))
