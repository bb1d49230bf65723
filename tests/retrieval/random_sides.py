"""Draw sources of queries and documents, and of one labelled set, as vectors, as a matrix and as pair scores."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.pair import Pair
from lossscope.core.relations import Relations
from lossscope.core.sides import QUERY_DOCUMENT
from lossscope.core.similarity import normalise

Kind = Literal["vectors", "matrix", "scorer"]
Query = tuple[npt.NDArray[Any], set[int], int | None]  # scores, positives, the query itself among the candidates


def vectors(rng: np.random.Generator, n: int, levels: int | None) -> torch.Tensor:
    """Return (n, 6) vectors; few levels make ties, and products that are exact in any order of adding."""
    x = torch.from_numpy(rng.normal(size=(n, 6)))
    return normalise(x) if levels is None else (x * levels).round()


def texts(seed: int, kind: Kind = "vectors", levels: int | None = None, n: int = 25, m: int = 40) -> SplitEmbeddings:
    """Return queries with 0 to 5 positives each, documents that belong to several queries or none."""
    rng = np.random.default_rng(seed)
    pairs = [(q, int(d)) for q in range(n) for d in rng.choice(m, rng.integers(0, 6), replace=False)]
    pairs = [pairs[i] for i in rng.permutation(len(pairs))]
    relations = Relations(n, m, np.array(pairs, dtype=np.int64), QUERY_DOCUMENT)
    ids = [f"q{row}" for row in range(n)], [f"d{row}" for row in range(m)]
    return _source(kind, vectors(rng, n, levels), vectors(rng, m, levels), relations, *ids)


def labelled(seed: int, kind: Kind = "vectors", levels: int | None = None, n: int = 30) -> SplitEmbeddings:
    """Return items of classes of several sizes; a few items are alone in their class."""
    rng = np.random.default_rng(seed)
    relations = Relations.of_labels(rng.integers(0, 9, n) ** 2 // 6, "item")
    x, ids = vectors(rng, n, levels), [f"x{row}" for row in range(n)]
    return _source(kind, x, x, relations, ids, ids)


def _source(
    kind: Kind, x: torch.Tensor, y: torch.Tensor, relations: Relations, ids: list[str], others: list[str]
) -> SplitEmbeddings:
    S = x @ y.T
    given: dict[str, Any] = {"images": None, "captions": None, "similarity": None}
    if kind == "vectors":
        given |= {"images": x, "captions": y}
    elif kind == "matrix":
        given |= {"similarity": S}
    else:
        given |= {"pair_scorer": lambda a, b: Pair(S[a][:, b], S.T[b][:, a].contiguous())}
    return SplitEmbeddings(
        "x", caption_image=None, image_ids=ids, caption_ids=others, fingerprint="f", relations=relations, **given
    )


def queries(source: SplitEmbeddings, direction: str) -> dict[str, Query]:
    """Return query id -> scores of all candidates, positives, and the column of the query itself."""
    relations, rows = source.relations, (np.arange(len(source.image_ids)), np.arange(len(source.caption_ids)))
    both = source.similarities(*rows)
    S = (both.i2t if direction == "i2t" else both.t2i).numpy()
    ids = source.image_ids if direction == "i2t" else source.caption_ids
    found: dict[str, Query] = {}
    for row, name in enumerate(ids):
        if relations.labels is not None:
            positives = set(np.flatnonzero(relations.labels == relations.labels[row]).tolist()) - {row}
        else:
            q, d = (0, 1) if direction == "i2t" else (1, 0)
            positives = {int(pair[d]) for pair in relations.positives if pair[q] == row}
        if positives:
            found[name] = (S[row], positives, row if relations.one_set else None)
    return found
