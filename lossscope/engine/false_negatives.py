"""Rows of S without the negatives that rules hide, as they are probably relevant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torch import Tensor

from lossscope.core.masks.base import MaskInputs, NegativeMask, hide_negatives
from lossscope.probes.views.view import DenseRows


def hide_by_rules(rows: DenseRows, rules: Sequence[NegativeMask], guide: DenseRows | None = None) -> DenseRows:
    """Return the same rows under a mask without the negatives that any of the rules hides.

    Args:
        rows: of one direction.
        rules: of `lossscope list masks`.
        guide: rows of the same queries and candidates under another model, for rules that compare with it.

    Raises:
        InputError: a rule decides by something that the source does not know.
    """
    keys = None if rows.candidate_keys is None else _of_every_query(rows.candidate_keys, rows.shape.queries)
    inputs = MaskInputs(rows.S, rows.mask, rows.related, keys, None if guide is None else guide.S, rows.items)
    return replace(rows, mask=hide_negatives(inputs, rules))


def _of_every_query(keys: Tensor, queries: int) -> Tensor:
    """(k, c) keys of the candidates of each batch -> (k·q, c)."""
    return keys.repeat_interleave(queries, dim=0)
