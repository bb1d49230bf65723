"""Add further candidates of a query, as losses of text embeddings do: other queries, candidates of its positive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from lossscope.core.batches import Batch
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.similarity import REPEATS, Mask
from lossscope.core.types import Rows, SameImage
from lossscope.errors import InputError
from lossscope.objectives.base import Objective
from lossscope.probes.base import Probe
from lossscope.probes.views.view import BatchShape, DenseRows
from lossscope.registry import short_spec, spec_of

TERMS = ("q2q", "d2q", "d2d", "p2p")
"""q2q: the query with other queries; d2q: its positive with all queries; d2d: its positive with the documents of
others; p2p: its positive with the positives of others. All are in the denominator of the query's softmax."""
_READABLE = frozenset({"rows", "counts", "extremes"})  # inputs of probes that rows with further candidates have


class _Block(NamedTuple):
    """A block of columns of the rows of all queries."""

    S: Tensor  # (b, n)
    valid: Tensor  # (b, n) bool
    items: Tensor  # (n,) r for row r of the documents, −1 − r for row r of the queries
    related: Tensor  # (b, n) bool, candidates that belong to the query's item: its copies, its positives


def require_terms(terms: Sequence[str], objectives: Sequence[Objective], probes: Sequence[Probe]) -> None:
    """Raise InputError for an unknown term, and for objectives and probes that cannot use terms."""
    if not terms:
        return
    unknown = [term for term in terms if term not in TERMS]
    if unknown or len(set(terms)) < len(terms):
        raise InputError(f"--terms must be some of {', '.join(TERMS)}, each once; got {','.join(terms)}")
    for objective in objectives:
        if not objective.traits.takes_terms:
            raise InputError(
                f"--terms is for losses of one softmax over all candidates: ntxent, infonce, vlc; got "
                f"{spec_of(objective)}"
            )
    for probe in probes:
        if not probe.reads <= _READABLE or probe.axis == "candidate":
            raise InputError(
                f"{short_spec(probe)} does not work with --terms, whose candidates are of both sides; leave out "
                "one of the two"
            )


def rows_with_terms(
    embedded: SplitEmbeddings, batch: Batch, terms: Sequence[str], same_image: SameImage = "keep"
) -> DenseRows:
    """Return the rows of S of a batch of pairs, (b, c + further candidates), in the first direction.

    The row of query i with positive d_i is [q_i · D, q_i · Q, d_i · Q, d_i · D, d_i · P] with the blocks of `terms`.
    An item of the batch is never its own candidate, and d2d leaves out documents of the same query. A repeated query or
    document elsewhere in the batch is a negative, as in the library, unless same_image is `mask`. d2q has the pair
    itself again, which counts as a repeated positive, not as a negative.
    Source: Li et al. 2023 (GTE), improved contrastive loss; Solatorio 2024 (GISTEmbed); MultipleNegativesRankingLoss of
    sentence-transformers.

    Args:
        embedded: the split; must have embeddings.
        batch: pairs, with mined negatives or without.
        terms: of TERMS.
        same_image: role of another positive of the same item, see `Batch.mask`.

    Raises:
        InputError: the batch is not of pairs, or the split has similarities only.
    """
    if batch.mode != "pairs":
        raise InputError(f"--terms is for batches of pairs; got --sampling {batch.mode}")
    if embedded.images is None or embedded.captions is None:
        raise InputError(f"--terms needs embeddings of both sides; {embedded.name} has similarities only")
    Q, D = embedded.images[torch.from_numpy(batch.images)], embedded.captions[torch.from_numpy(batch.captions)]
    mask = batch.mask(embedded.relations).to(Q.device)
    known = torch.from_numpy(embedded.relations.is_positive(batch.images, batch.captions))
    blocks = {"q2d": _Block(Q @ D.T, mask.valid, torch.from_numpy(batch.captions), known)}
    blocks |= {term: _block(term, Q, D, batch, known) for term in TERMS if term in terms}
    S = torch.cat([block.S for block in blocks.values()], 1)
    valid = torch.cat([block.valid.to(S.device) for block in blocks.values()], 1)
    related = torch.cat([block.related for block in blocks.values()], 1).to(S.device)
    match = torch.zeros_like(valid)
    match[:, : mask.match.shape[1]] = mask.match
    if same_image == "mask":
        valid &= match | ~related
    info = {REPEATS: torch.ones(len(Q), device=S.device, dtype=S.dtype)} if "d2q" in terms else {}
    items = torch.cat([block.items for block in blocks.values()])
    shape = BatchShape(1, "i2t", torch.from_numpy(batch.images), items[None])
    return DenseRows(shape, S, Mask(match, valid, info), related=related)


def units_of_items(items: Rows, queries: Rows, documents: Rows) -> Rows:
    """Return the units of candidates.

    Args:
        items: candidates, as in a block, of any shape.
        queries: (n,) unit of each query.
        documents: (m,) unit of each document.
    """
    are_queries = items < 0
    return np.where(are_queries, queries[np.where(are_queries, -1 - items, 0)], documents[np.maximum(items, 0)])


def _block(term: str, Q: Tensor, D: Tensor, batch: Batch, known: Tensor) -> _Block:
    """Return the block of a term; `known` (b, c) marks the documents that are known positives of each query."""
    b = len(Q)
    queries, documents = torch.from_numpy(batch.images), torch.from_numpy(batch.captions)
    others = ~torch.eye(b, dtype=torch.bool)
    positives, copies = D[:b], documents[:b, None] == documents[None, :]
    if term == "q2q":
        return _Block(Q @ Q.T, others, -1 - queries, queries[:, None] == queries[None, :])
    if term == "d2q":
        return _Block(positives @ Q.T, others, -1 - queries, known[:, :b].T)
    if term == "p2p":
        return _Block(positives @ positives.T, others, documents[:b], copies[:, :b] | known[:, :b])
    owner = torch.arange(b)
    if batch.negative_of is not None:
        owner = torch.cat([owner, torch.from_numpy(batch.negative_of)])
    return _Block(positives @ D.T, torch.arange(b)[:, None] != owner[None, :], documents, copies | known)
