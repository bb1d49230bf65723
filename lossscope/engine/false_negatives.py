"""Rows of S without the negatives that rules hide, as they are probably relevant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torch import Tensor

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.masks.base import BatchItems, MaskInputs, NegativeMask, hide_negatives
from lossscope.probes.views.view import DenseRows


def hide_by_rules(
    rows: DenseRows, rules: Sequence[NegativeMask], split: SplitEmbeddings | None, guide: DenseRows | None = None
) -> DenseRows:
    """Return the same rows under a mask without the negatives that any of the rules hides.

    Args:
        rows: of one direction.
        rules: of `lossscope list masks`.
        split: whose items the rows are; None where they are the items of both sides as one set.
        guide: rows of the same queries and candidates under another model, for rules that compare with it.

    Raises:
        InputError: a rule decides by something that the source does not know.
    """
    keys = None if rows.candidate_keys is None else _of_every_query(rows.candidate_keys, rows.shape.queries)
    inputs = MaskInputs(rows.S, rows.mask, rows.related, keys, None if guide is None else guide.S, _items(rows, split))
    return replace(rows, mask=hide_negatives(inputs, rules))


def _of_every_query(keys: Tensor, queries: int) -> Tensor:
    """(k, c) keys of the candidates of each batch -> (k·q, c)."""
    return keys.repeat_interleave(queries, dim=0)


def _items(rows: DenseRows, split: SplitEmbeddings | None) -> BatchItems | None:
    if split is None:
        return None
    shape = rows.shape
    first = shape.direction != "t2i"
    queries, candidates = shape.query_ids.cpu().numpy(), shape.candidate_ids.cpu().numpy()
    return BatchItems(split.image_ids, split.caption_ids, queries, candidates, first)
