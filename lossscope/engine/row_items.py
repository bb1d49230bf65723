"""Which items are the rows and columns of S? Their ids, input keys, known positives and embeddings, from the split."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.masks.base import BatchItems
from lossscope.core.types import Rows
from lossscope.probes.views.view import DenseRows


def with_items(embedded: SplitEmbeddings, rows: DenseRows, keys: bool) -> DenseRows:
    """Return rows with the ids of their items; without ids if both sides are one set.

    Args:
        embedded: the split.
        rows: of S, of k batches.
        keys: include the input keys of queries and candidates, and the pairs that are known positives.
    """
    shape, forward = rows.shape, rows.shape.direction == "i2t"
    queries, candidates = shape.query_ids.numpy(), shape.candidate_ids.numpy()
    if not embedded.is_joined:
        ids = embedded.image_ids, embedded.caption_ids
        rows = replace(rows, items=BatchItems(*ids, queries, candidates, forward, embedded.read_texts))
    if not keys:
        return rows
    related = None
    if not embedded.is_joined:
        known, batches = (
            embedded.relations.is_positive,
            zip(queries.reshape(len(candidates), -1), candidates, strict=True),
        )
        related = torch.from_numpy(np.concatenate([known(q, c) if forward else known(c, q).T for q, c in batches]))
    first, second = embedded.input_keys
    of_queries, of_candidates = (first, second) if forward else (second, first)
    query_keys, candidate_keys = _select(of_queries, queries), _select(of_candidates, candidates)
    return replace(rows, query_keys=query_keys, candidate_keys=candidate_keys, related=related)


def with_vectors(embedded: SplitEmbeddings, rows: DenseRows) -> DenseRows:
    """Return rows with the embeddings of queries and candidates; the same rows if the split has none."""
    sides = (embedded.images, embedded.captions)
    queries, candidates = sides if rows.shape.direction == "i2t" else sides[::-1]
    if queries is None or candidates is None:
        return rows
    query_ids, candidate_ids = (ids.to(rows.S.device) for ids in (rows.shape.query_ids, rows.shape.candidate_ids))
    return replace(rows, queries=queries[query_ids], candidates=candidates[candidate_ids])


def _select(keys: Rows | None, rows: Rows) -> Tensor | None:
    return None if keys is None else torch.from_numpy(keys[rows])
