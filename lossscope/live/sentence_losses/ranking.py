"""Read MultipleNegativesRankingLoss, plain or cached: a softmax over documents, with further terms if any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from lossscope.core.distributed import process_group
from lossscope.core.similarity import REPEATS, Mask
from lossscope.core.types import DIRECTIONS
from lossscope.engine.batch_masks import offset_mask
from lossscope.engine.direction_rows import DirectionRows
from lossscope.errors import InputError
from lossscope.registry import build

from ..given_weights import WEIGHTS, GivenWeights
from ..observed import Observed
from ..recording import Call, gradients_of
from .base import LossCall, LossReader

TERMS = ("query_to_doc", "query_to_query", "doc_to_query", "doc_to_doc")  # in the order in which the loss computes them


def ranking_loss(loss: Any) -> LossReader:
    """Return the reader of MultipleNegativesRankingLoss; its cached form delegates options to an inner loss."""
    is_delegated = isinstance(getattr(type(loss), "similarity_fct", None), property)
    form = _Form.of(loss.loss if is_delegated else loss, type(loss).__name__)
    return LossReader(form.owner, form.observed, keeps_gradients=form.weighs_hardness, similarities=len(form.terms))


@dataclass(frozen=True)
class _Form:
    """Options of a loss: rows of queries against all documents of the batch, positives first.

    A joint softmax over several terms (partition_mode joint) has their blocks side by side in a row. The pair comes
    again in doc_to_query, which counts as a repeated positive. Separate softmaxes (per_direction) are the two
    directions.
    """

    name: str  # of the loss, for messages
    owner: Any  # the loss that has the options
    terms: Sequence[str]  # of TERMS
    is_joint: bool  # whether all terms are in one softmax
    weighs_hardness: bool  # whether weights differ from a plain softmax, so that gradients give them

    @classmethod
    def of(cls, owner: Any, name: str) -> _Form:
        chosen = getattr(owner, "directions", TERMS[:1])
        terms = [term for term in TERMS if term in chosen]
        is_joint = getattr(owner, "partition_mode", "joint") == "joint" or terms == ["query_to_doc"]
        has_mode = getattr(owner, "hardness_mode", None) is not None
        return cls(name, owner, terms, is_joint, has_mode and owner.hardness_strength > 0)

    def observed(self, call: LossCall) -> Observed:
        """Return what the loss saw in a call."""
        terms, scale = self.terms, float(self.owner.scale)
        if not call.calls or len(call.calls) % len(terms):
            raise InputError(
                f"{self.name} must compute {' and '.join(terms)}; it computed {len(call.calls)} similarities, as this "
                "version of sentence-transformers does otherwise"
            )
        calls = {term: list(call.calls[index :: len(terms)]) for index, term in enumerate(terms)}
        blocks = {term: _block_of(term, [recorded.result.detach() for recorded in calls[term]]) for term in terms}
        pairs = len(blocks["query_to_doc"]) if call.pairs is None else call.pairs
        weights = self._weights(call.value, calls, pairs) if call.is_objective and self.weighs_hardness else {}
        offset = process_group().rank * pairs if getattr(self.owner, "gather_across_devices", False) else 0
        if call.is_objective and self.is_joint and len(blocks) > 1:
            W = torch.cat(list(weights.values()), 1) if weights else None
            mask = _with_weights(_joint_mask(blocks, offset), W)
            rows = [DirectionRows(torch.cat(list(blocks.values()), 1), mask)]
        else:
            softmaxes = [term for term in ("query_to_doc", "doc_to_query") if term in blocks]
            rows = [_rows(term, calls[term], blocks[term], weights.get(term), offset) for term in softmaxes]
        objective = GivenWeights(scale) if self.weighs_hardness else build("objectives", f"ntxent:tau={1 / scale!r}")
        return Observed(
            rows[0], call.sides, DIRECTIONS[: len(rows)], rows[1] if len(rows) > 1 else None, objective,
            call.value.detach(), has_unit_vectors=False,
        )  # fmt: skip

    def _weights(self, value: Tensor, calls: dict[str, list[Call]], pairs: int) -> dict[str, Tensor]:
        """Return b · dL/dS of each block, times the number of averaged softmaxes; rows set the weights of positives."""
        factor = pairs * (1 if self.is_joint else len(calls))
        flat = [recorded for several in calls.values() for recorded in several]
        by_call = dict(zip(map(id, flat), gradients_of(value, flat), strict=True))
        return {
            term: _block_of(term, [by_call[id(recorded)] for recorded in several]) * factor
            for term, several in calls.items()
        }


def _block_of(term: str, parts: list[Tensor]) -> Tensor:
    """Return the rows (b, n) of all chunks of a batch; terms of documents have them as columns."""
    return torch.cat([part.T for part in parts] if term.startswith("doc") else parts)


def _rows(term: str, calls: list[Call], block: Tensor, W: Tensor | None, offset: int) -> DirectionRows:
    """Return the rows of a softmax over the similarities of one term: of queries, or of documents."""
    row, column = (1, 0) if term.startswith("doc") else (0, 1)  # arguments of the similarity
    mask = _with_weights(offset_mask(*block.shape, offset, block.device, DIRECTIONS[row]), W)
    return DirectionRows(
        block, mask, torch.cat([call.args[row].detach() for call in calls]), calls[0].args[column].detach()
    )


def _joint_mask(blocks: dict[str, Tensor], offset: int) -> Mask:
    """Return the mask of blocks side by side; entries of −inf are left out."""
    valid = {term: block != -torch.inf for term, block in blocks.items()}
    first = blocks["query_to_doc"]
    info = {}
    if "doc_to_query" in blocks:
        valid["doc_to_query"].diagonal(offset).fill_(False)
        info = {REPEATS: torch.ones(len(first), device=first.device)}
    match = torch.zeros_like(valid["query_to_doc"])
    match.diagonal(offset).fill_(True)
    rest = [torch.zeros_like(block) for block in list(valid.values())[1:]]
    return Mask(torch.cat([match, *rest], 1), torch.cat(list(valid.values()), 1), info)


def _with_weights(mask: Mask, W: Tensor | None) -> Mask:
    """Return the mask with W of a softmax; rows sum to 0, so a positive gets minus the sum of the others."""
    if W is None:
        return mask
    negatives = W.masked_fill(~mask.negatives, 0.0)
    W = negatives.where(~mask.positives, -negatives.sum(1, keepdim=True))
    return replace(mask, info={**mask.info, WEIGHTS: W})
