"""Arguments of a call of `lossscope.Loss` -> similarities with their graph, and their mask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from lossscope.core.sides import ITEM, QUERY_DOCUMENT, Sides
from lossscope.core.similarity import Mask, cosine, normalise
from lossscope.engine.batch_masks import i2t_mask, mined_mask, offset_mask, require_matrix
from lossscope.errors import InputError
from lossscope.objectives.base import Objective


@dataclass(frozen=True)
class LossBatch:
    """S of a batch, and which entries match."""

    S: Tensor  # (q, c) with its graph, float32 or float64
    mask: Mask
    pairs: int  # B, the divisor of reductions over pairs
    embeddings: tuple[Tensor, Tensor] | None = None  # of unit length, with their graph
    sides: Sides = QUERY_DOCUMENT
    is_mutual: bool = True  # whether candidates are queries too, in the other direction


def batch_of(
    objective: Objective,
    first: Tensor,
    second: Tensor | None,
    of_library: tuple[Sequence[Tensor] | None, Tensor | None, Tensor | None],
    mask: Mask | Tensor | None,
) -> LossBatch:
    """Return the batch of a call.

    Args:
        objective: what it takes beside S.
        first: S, or embeddings.
        second: documents, or labels.
        of_library: indices_tuple, ref_emb and ref_labels of pytorch-metric-learning.
        mask: of the call, see `Loss.forward`.

    Raises:
        InputError: arguments that do not fit.
    """
    _require_floats(first, "S or embeddings")
    if second is not None and not isinstance(second, Tensor):
        raise InputError(f"the second argument must be documents or labels, a tensor; got {type(second).__name__}")
    is_labels = second is not None and second.ndim == 1
    if is_labels or any(x is not None for x in of_library):
        batch = _of_one_set(first, second, *of_library, mask)
    elif second is None:
        batch = _of_pairs(objective, _wide(first), mask)
    else:
        _require_floats(second, "documents")
        unit = normalise(_wide(first)), normalise(_wide(second))
        batch = replace(_of_pairs(objective, cosine(*unit), mask), embeddings=unit)
    return _with_info(objective, batch)


def _of_pairs(objective: Objective, S: Tensor, mask: Mask | Tensor | None) -> LossBatch:
    """Return a batch of S (b, b) of pairs, (b, b (1 + k)) with mined negatives, or of a mask."""
    require_matrix(S, QUERY_DOCUMENT)
    q, c = S.shape
    if "offline" in objective.traits.required_info:
        return _of_quintuplets(S, mask)
    if mask is None:
        if q < 2:
            raise InputError(
                f"a batch must have 2 pairs or more, as a single pair has no negative; got {q}. To leave out a last "
                "short batch: DataLoader(..., drop_last=True)"
            )
        if c % q:
            raise InputError(
                f"documents must be b (1 + k) rows, the positives of the b queries first; got {c} of {q} queries. Say "
                "which match: mask=M, M bool (queries, documents)"
            )
        return LossBatch(S, offset_mask(q, c, 0, S.device), q)
    given = _mask_of(S, mask)
    return LossBatch(S, given, int(given.positives.any(0).sum()))


def _of_quintuplets(S: Tensor, mask: Mask | Tensor | None) -> LossBatch:
    """Return a batch whose S (3 B, 3 B) has offline candidates behind the B pairs of the mask, as `train` has."""
    pairs = 0 if mask is None else len(mask.match if isinstance(mask, Mask) else mask)
    if pairs < 2 or S.shape != (3 * pairs, 3 * pairs):
        raise InputError(
            "an objective with offline candidates must get S (3 B, 3 B) and the mask (B, B) of its pairs, "
            "mask=torch.eye(B).bool(). Behind the B pairs stand offline items as training.offline_candidates orders "
            f"them; got S {tuple(S.shape)} and {f'a mask of {pairs} queries' if pairs else 'no mask'}"
        )
    assert mask is not None
    return LossBatch(S, _mask_of(S[:pairs, :pairs], mask), pairs)


def _of_one_set(
    embeddings: Tensor,
    labels: Tensor | None,
    indices: Sequence[Tensor] | None,
    ref_emb: Tensor | None,
    ref_labels: Tensor | None,
    mask: Mask | Tensor | None,
) -> LossBatch:
    """Return a batch of items with labels, among themselves or against references, as pytorch-metric-learning has."""
    is_one_set = ref_emb is None or ref_emb is embeddings
    references = embeddings if ref_emb is None else ref_emb
    _require_floats(references, "ref_emb")
    unit = normalise(_wide(embeddings)), normalise(_wide(references))
    S = cosine(*unit)
    n, m = S.shape
    if mask is not None:
        raise InputError("labels and indices_tuple say which items match, and so does mask; give one of them")
    if is_one_set and n < 2:
        raise InputError(f"a batch must have 2 items or more, as a single item has no candidate; got {n}")
    if indices is not None:
        found = mined_mask(indices, n, m, S.device)
    else:
        given = _labels(labels, n, "labels").to(S.device)
        others = given if ref_labels is None and n == m else _labels(ref_labels, m, "ref_labels").to(S.device)
        found = _mask_of_labels(given, others, is_one_set)
    sides = ITEM if is_one_set else Sides("anchor", "reference")
    return LossBatch(S, found, n, unit, sides, is_mutual=is_one_set and indices is None)


def _mask_of_labels(labels: Tensor, others: Tensor, is_one_set: bool) -> Mask:
    match = labels[:, None] == others[None, :]
    valid = torch.ones_like(match)
    if is_one_set:
        valid.fill_diagonal_(False)
    return Mask(match & valid, valid)


def _labels(labels: Any, items: int, name: str) -> Tensor:
    if not isinstance(labels, Tensor) or labels.shape != (items,) or labels.is_floating_point():
        got = f"{tuple(labels.shape)} of {labels.dtype}" if isinstance(labels, Tensor) else type(labels).__name__
        raise InputError(f"{name} must be a tensor of a whole number per item, ({items},); got {got}")
    return labels


def _mask_of(S: Tensor, mask: Mask | Tensor) -> Mask:
    if not isinstance(mask, Tensor):
        return i2t_mask(S, mask, QUERY_DOCUMENT)
    if mask.dtype != torch.bool or mask.shape != S.shape:
        raise InputError(
            f"mask must be bool {tuple(S.shape)}, True where a candidate is a positive; got {tuple(mask.shape)} of "
            f"{mask.dtype}"
        )
    return i2t_mask(S, Mask(mask, torch.ones_like(mask)), QUERY_DOCUMENT)


def _with_info(objective: Objective, batch: LossBatch) -> LossBatch:
    """Return the batch with what the objective needs in its mask. Raises InputError where the call lacks it."""
    traits = objective.traits
    missing = [name for name in traits.required_info if name != "offline" and name not in batch.mask.info]
    if missing:
        raise InputError(f"mask must have {', '.join(missing)} in its info, which this objective reads; it has not")
    if traits.needs_embeddings:
        if batch.embeddings is None:
            raise InputError("this objective reads embeddings: call the loss with (queries, documents) in place of S")
        queries, candidates = (x.detach() for x in batch.embeddings)
        info = {**batch.mask.info, "queries": queries, "candidates": candidates}
        return replace(batch, mask=replace(batch.mask, info=info))
    return batch


def _require_floats(x: Any, name: str) -> None:
    if not isinstance(x, Tensor):
        raise InputError(f"{name} must be a tensor; got {type(x).__name__}")
    if not x.is_floating_point():
        raise InputError(f"{name} must be floating point; got {x.dtype}. Write x.float()")
    if x.ndim != 2:
        raise InputError(f"{name} must be a matrix; got {tuple(x.shape)}")


def _wide(x: Tensor) -> Tensor:
    """Return float32 of half precision; float32 and float64 as they are."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
