"""MultipleNegativesRankingLoss and its cached form: a softmax over documents, and further terms where it has them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from lossscope.core.distributed import process_group
from lossscope.core.sides import Sides
from lossscope.core.similarity import REPEATS, Mask
from lossscope.core.types import Direction
from lossscope.engine.batch_masks import offset_mask
from lossscope.engine.direction_rows import DirectionRows
from lossscope.errors import InputError
from lossscope.objectives.base import Objective
from lossscope.registry import build

from ..given_weights import WEIGHTS, GivenWeights
from ..observed import Observed
from ..recording import Call, gradients_of
from .base import LossCall, LossReader

TERMS = ("query_to_doc", "query_to_query", "doc_to_query", "doc_to_doc")  # in the order in which the loss computes them


@dataclass(frozen=True)
class RankingLoss(LossReader):
    """Reads MultipleNegativesRankingLoss: rows of queries against all documents of the batch, positives first.

    One softmax over several terms (partition_mode joint) has their blocks side by side in a row; in it the pair itself
    stands once more in doc_to_query, which is stated as a repeated positive. Softmaxes of their own (per_direction) are
    the two directions.
    """

    @property
    def owner(self) -> Any:
        """The loss that has the options; the cached form delegates them to one inside."""
        is_delegated = isinstance(getattr(type(self.loss), "similarity_fct", None), property)
        return self.loss.loss if is_delegated else self.loss

    @property
    def _terms(self) -> list[str]:
        chosen = getattr(self.owner, "directions", TERMS[:1])
        return [term for term in TERMS if term in chosen]

    @property
    def _is_joint(self) -> bool:
        return getattr(self.owner, "partition_mode", "joint") == "joint" or self._terms == ["query_to_doc"]

    @property
    def keeps_gradients(self) -> bool:
        return getattr(self.owner, "hardness_mode", None) is not None and self.owner.hardness_strength > 0

    @property
    def similarities(self) -> int:
        return len(self._terms)

    def observed(self, call: LossCall, sides: Sides, name: str, own: bool) -> Observed:
        terms = self._terms
        if not call.calls or len(call.calls) % len(terms):
            raise InputError(
                f"{type(self.loss).__name__} must compute {' and '.join(terms)}; it computed {len(call.calls)} "
                "similarities, as this version of sentence-transformers does otherwise"
            )
        calls = {term: list(call.calls[index :: len(terms)]) for index, term in enumerate(terms)}
        blocks = {term: _block_of(term, [one.result.detach() for one in calls[term]]) for term in terms}
        pairs = len(blocks["query_to_doc"]) if call.pairs is None else call.pairs
        weights = self._weights(call.value, calls, pairs) if own and self.keeps_gradients else {}
        gathers = getattr(self.owner, "gather_across_devices", False)
        rows, second = self._rows(calls, blocks, weights, own, process_group().rank * pairs if gathers else 0)
        directions: tuple[Direction, ...] = ("i2t",) if second is None else ("i2t", "t2i")
        objective, value = (self._objective(), call.value.detach()) if own else (None, None)
        return Observed(rows, sides, directions, second, objective, value, name, has_unit_vectors=False)

    def _objective(self) -> Objective:
        scale = float(self.owner.scale)
        if self.keeps_gradients:
            return GivenWeights(scale)
        objective: Objective = build("objectives", f"ntxent:tau={1 / scale!r}")
        return objective

    def _rows(
        self, calls: dict[str, list[Call]], blocks: dict[str, Tensor], weights: dict[str, Tensor], own: bool,
        offset: int,
    ) -> tuple[DirectionRows, DirectionRows | None]:  # fmt: skip
        """Return the rows of queries, and those of documents where these have a softmax of their own."""
        first = calls["query_to_doc"]
        queries, documents = torch.cat([one.args[0].detach() for one in first]), first[0].args[1].detach()
        if own and self._is_joint and len(blocks) > 1:
            mask = _joint_mask(blocks, offset)
            W = torch.cat(list(weights.values()), 1) if weights else None
            return DirectionRows(torch.cat(list(blocks.values()), 1), _with_weights(mask, W)), None
        q2d, d2q = blocks["query_to_doc"], blocks.get("doc_to_query")
        mask = _with_weights(offset_mask(*q2d.shape, offset, q2d.device), weights.get("query_to_doc"))
        rows = DirectionRows(q2d, mask, queries, documents)
        if d2q is None:
            return rows, None
        mask = _with_weights(offset_mask(*d2q.shape, offset, d2q.device, "t2i"), weights.get("doc_to_query"))
        back = calls["doc_to_query"]
        return rows, DirectionRows(
            d2q, mask, torch.cat([one.args[1].detach() for one in back]), back[0].args[0].detach()
        )

    def _weights(self, value: Tensor, calls: dict[str, list[Call]], pairs: int) -> dict[str, Tensor]:
        """b · dL/dS of each block, of each softmax where they are averaged; the positives' are set by their rows."""
        factor = pairs * (1 if self._is_joint else len(calls))
        flat = [one for several in calls.values() for one in several]
        by_call = dict(zip(map(id, flat), gradients_of(value, flat), strict=True))
        return {
            term: _block_of(term, [by_call[id(one)] for one in several]) * factor for term, several in calls.items()
        }


def _block_of(term: str, parts: list[Tensor]) -> Tensor:
    """Return the rows of all chunks of a batch: (b, n); terms of documents are computed with them as columns."""
    return torch.cat([part.T for part in parts] if term.startswith("doc") else parts)


def _joint_mask(blocks: dict[str, Tensor], offset: int) -> Mask:
    """Return the mask of blocks side by side; what the loss left out is −inf."""
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
    """Return the mask with W of a softmax, whose rows sum to 0: the positive's is minus the sum of the others."""
    if W is None:
        return mask
    negatives = W.masked_fill(~mask.negatives, 0.0)
    W = negatives.where(~mask.positives, -negatives.sum(1, keepdim=True))
    return replace(mask, info={**mask.info, WEIGHTS: W})
