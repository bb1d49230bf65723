"""Build rules for negatives that are probably relevant, and hide these negatives in rows of S."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torch import Tensor

from lossscope.core.masks.base import MaskInputs, NegativeMask, hide_negatives
from lossscope.probes.views.view import DenseRows
from lossscope.registry import build, names


def build_rule(typed: str) -> NegativeMask:
    """Return the rule of a spec; a file or an audit's folder stands for its pairs, unless a rule has that name.

    Raises SpecError for an invalid spec.
    """
    if typed.partition(":")[0].strip().replace("-", "_").lower() not in names("masks"):
        from lossscope.core.known_pairs import rule_spec

        typed = rule_spec(typed)
    rule: NegativeMask = build("masks", typed)
    return rule


def hide_by_rules(rows: DenseRows, rules: Sequence[NegativeMask], guide: DenseRows | None = None) -> DenseRows:
    """Return the same rows with a mask that leaves out the negatives which any rule hides.

    Args:
        rows: of one direction.
        rules: of `lossscope list masks`.
        guide: rows of the same queries and candidates under another model, for rules that compare with them.

    Raises:
        InputError: a rule needs information that the source does not have.
    """
    keys = None if rows.candidate_keys is None else _of_every_query(rows.candidate_keys, rows.shape.queries)
    inputs = MaskInputs(rows.S, rows.mask, rows.related, keys, None if guide is None else guide.S, rows.items)
    return replace(rows, mask=hide_negatives(inputs, rules))


def _of_every_query(keys: Tensor, queries: int) -> Tensor:
    """(k, c) keys of the candidates of each batch -> (k·q, c)."""
    return keys.repeat_interleave(queries, dim=0)
