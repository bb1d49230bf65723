"""What the flight recorder keeps of a step, and the arrays of the dump that it becomes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lossscope.core.sides import Sides, plural
from lossscope.core.similarity import Mask, normalise
from lossscope.errors import InputError
from lossscope.objectives.base import Objective

from .batch_relations import labels_of, relations_of_mask
from .observed import Observed

Array = npt.NDArray[Any]
Ids = Sequence[object] | Tensor | Array
Names = tuple[tuple[str, ...] | None, tuple[str, ...] | None]  # ids of both sides; None: they are not known


@dataclass(frozen=True)
class RecordedStep:
    """A batch as it was, on the host: later changes of its tensors in place do not reach it."""

    step: int
    sides: Sides
    objective: Objective | None
    S: Tensor  # (n, m) float32 or wider
    second: tuple[Tensor, Mask] | None  # rows of the second direction, where they are not S transposed
    embeddings: tuple[Tensor, Tensor] | None  # as they were given
    mask: Mask
    mined: int
    ids: Names
    bytes: int  # see `needed_bytes`

    @classmethod
    def of(
        cls,
        observed: Observed,
        objective: Objective | None,
        step: int,
        ids: Names,
        last: RecordedStep | None,
        last_mask: Mask | None,
    ) -> RecordedStep:
        """Copy a batch to the host.

        Args:
            observed: the batch, with rows.
            objective: whose W is written; None: it is not known.
            step: its number.
            ids: see `names_of`.
            last: the step before it.
            last_mask: its mask on the device: masks of pairs are the same in every batch, and kept once.
        """
        assert observed.rows is not None
        rows = observed.rows.detach()
        if last is not None and last_mask is observed.rows.mask:
            mask = last.mask
        else:
            mask = _mask_on_host(rows.mask)
        second = None
        if observed.second is not None:
            back = observed.second.detach()
            second = _copy(back.S), _mask_on_host(back.mask)
        copies = [_copy(x) for x in _vectors_of(observed)]
        vectors = (copies[0], copies[-1]) if copies else None
        size = needed_bytes(observed, ids)
        return cls(
            step, observed.sides, objective, _copy(rows.S), second, vectors, mask, observed.mined, ids, size
        )  # fmt: skip

    def arrays(self) -> dict[str, Array]:
        """Return the arrays of a dump that every command opens: of both sides, their pairs and ids, and S."""
        sides = self.sides
        arrays: dict[str, Array] = {"sides": np.array(sides.text.split("/")), "similarity": self.S.numpy()}
        arrays |= self._vectors()
        match = self.mask.match & self.mask.valid
        if sides.is_one_set:
            arrays["labels"] = labels_of(match)
        else:
            arrays |= self._pairs(match)
        for ids, side in zip(self.ids, (sides.first, sides.second), strict=True):
            if ids is not None and side is not None:
                arrays[f"{side}_id"] = np.array(ids)
        if not self.mask.all_valid:
            arrays["valid"] = self.mask.valid.numpy()
        return arrays

    def _vectors(self) -> dict[str, Array]:
        if self.embeddings is None:
            return {}
        if self.sides.is_one_set:
            return {"embeddings": self.embeddings[0].numpy()}
        names = ("images", "captions") if self.sides.is_image_text else ("queries", "documents")
        return {name: x.numpy() for name, x in zip(names, self.embeddings, strict=True)}

    def _pairs(self, match: Tensor) -> dict[str, Array]:
        """Return the image of each caption where each has one, else the positives; and mined negatives."""
        relations = relations_of_mask(match, self.sides, self.mined)
        if self.sides.is_image_text:
            by_caption = match.T.nonzero()
            if torch.equal(by_caption[:, 0], torch.arange(match.shape[1])):
                return {"caption_image": by_caption[:, 1].numpy()}
        arrays: dict[str, Array] = {"positives": relations.positives}
        if relations.negatives is not None:
            arrays["negatives"] = relations.negatives
        return arrays

    def weights(self) -> tuple[dict[str, Array], dict[str, str]]:
        """Return W of each direction, and why one cannot be computed, as of NaN; nothing of an unknown objective."""
        if self.objective is None:
            return {}, {}
        rows = [("W", self.S, self.mask)]
        if self.second is not None:
            rows.append(("W_second", *self.second))
        elif not self.sides.is_one_set and "both" not in self.objective.counted_directions:
            rows.append(("W_second", self.S.T.contiguous(), self.mask.t()))
        weights: dict[str, Array] = {}
        reasons: dict[str, str] = {}
        for name, S, mask in rows:
            try:
                with torch.inference_mode(False):
                    weights[name] = self.objective(S, self._with_embeddings(mask)).W.detach().float().numpy()
            except Exception as error:  # of any kind, as objectives of users may be
                reasons[name] = f"{type(error).__name__}: {error}"
        return weights, reasons

    def _with_embeddings(self, mask: Mask) -> Mask:
        if self.objective is None or not self.objective.traits.needs_embeddings or self.embeddings is None:
            return mask
        first, second = (normalise(x.float()) for x in self.embeddings)
        queries, candidates = (first, second) if mask.direction == "i2t" else (second, first)
        return Mask(mask.match, mask.valid, {**mask.info, "queries": queries, "candidates": candidates}, mask.direction)


def _copy(x: Tensor) -> Tensor:
    wide = x.detach().float() if x.dtype not in (torch.float32, torch.float64) else x.detach()
    return wide.to("cpu", copy=True).contiguous()


def _mask_on_host(mask: Mask) -> Mask:
    info = {name: x.detach().to("cpu", copy=True) for name, x in mask.info.items()}
    return Mask(mask.match.to("cpu", copy=True), mask.valid.to("cpu", copy=True), info, mask.direction)


def mask_bytes(mask: Mask) -> int:
    """Return what the tensors of a mask need."""
    return mask.match.nbytes + mask.valid.nbytes + sum(x.nbytes for x in mask.info.values())


def needed_bytes(observed: Observed, ids: Names) -> int:
    """Return what a copy of a batch needs, but for the mask of its rows, which other steps may have, too.

    Args:
        observed: the batch, with rows.
        ids: see `names_of`.
    """
    assert observed.rows is not None
    tensors, size = [observed.rows.S, *_vectors_of(observed)], 0
    if observed.second is not None:
        tensors.append(observed.second.S)
        size += mask_bytes(observed.second.mask)
    size += sum(x.numel() * (8 if x.dtype == torch.float64 else 4) for x in tensors)
    return size + sum(sys.getsizeof(side) + sum(map(sys.getsizeof, side)) for side in ids if side is not None)


def _vectors_of(observed: Observed) -> tuple[Tensor, ...]:
    """Return the embeddings of both sides, of one set once; none where they are not known."""
    rows = observed.rows
    assert rows is not None
    vectors = observed.embeddings
    if vectors is None and rows.queries is not None and rows.candidates is not None:
        vectors = (rows.queries, rows.candidates)
    if vectors is None:
        return ()
    return vectors[:1] if observed.sides.is_one_set else vectors


def names_of(observed: Observed, ids: tuple[Ids | None, Ids | None]) -> Names:
    """Return ids of both sides as texts. Raises InputError unless there is one an item."""
    sides = (observed.sides.first, observed.sides.second)
    first, second = (
        _ids(one, n, plural(str(side))) for one, n, side in zip(ids, observed.shape, sides, strict=True)
    )  # fmt: skip
    return first, second


def _ids(ids: Ids | None, n: int, name: str) -> tuple[str, ...] | None:
    """Return ids as texts. Raises InputError unless there is one an item."""
    if ids is None:
        return None
    plain = ids.tolist() if hasattr(ids, "tolist") else list(ids)
    if len(plain) != n:
        raise InputError(f"ids of {name} must be one an item, {n}; got {len(plain)}")
    return tuple(str(one) for one in plain)
