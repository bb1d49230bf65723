"""Keep a step for the flight recorder, and return the arrays of its dump."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lossscope.core.sides import plural
from lossscope.core.similarity import Mask, normalise
from lossscope.engine.direction_rows import DirectionRows
from lossscope.errors import InputError
from lossscope.io.arrays import text_array
from lossscope.objectives.base import Objective

from .observed import Observed, Row, labels_of
from .watched_step import BothIds, Ids

Array = npt.NDArray[Any]
Names = tuple[tuple[str, ...] | None, tuple[str, ...] | None]  # ids of both sides; None: unknown


@dataclass
class RecordedStep:
    """A recent step, whose batch may become a dump."""

    row: Row  # number of the step as `step`, statistics, and later numbers
    objective: Objective | None  # of the written W; None: unknown
    ids: Names
    copy: Observed | None = None  # of its batch, see `on_host`; None: no room for it
    bytes: int = 0  # of the copy, see `needed_bytes`

    @property
    def step(self) -> int:
        """Its number."""
        return int(self.row["step"])

    @property
    def batch(self) -> Observed:
        """Its batch, where there is room for it."""
        assert self.copy is not None
        return self.copy

    @property
    def mask(self) -> Mask:
        """The mask of its rows."""
        return self.batch.first.mask

    def arrays(self) -> dict[str, Array]:
        """Return the arrays of a dump that every command opens: both sides, their pairs and ids, and S."""
        mask, sides, S = self.mask, self.batch.sides, self.batch.first.S
        arrays: dict[str, Array] = {"sides": np.array(sides.text.split("/")), "similarity": S.numpy()}
        arrays |= {key: x.numpy() for key, x in zip(sides.keys, self.batch.embeddings or (), strict=False)}
        arrays |= {"labels": labels_of(mask.positives)} if sides.is_one_set else self._pairs(mask.positives)
        for ids, side in zip(self.ids, (sides.first, sides.second), strict=True):
            if ids is not None and side is not None:
                arrays[f"{side}_id"] = text_array(ids)
        if not mask.all_valid:
            arrays["valid"] = mask.valid.numpy()
        return arrays

    def _pairs(self, match: Tensor) -> dict[str, Array]:
        """Return the image of each caption if each has one, else the positives; and mined negatives."""
        relations = self.batch.relations()
        if relations.sides.is_image_text:
            by_caption = match.T.nonzero()
            if torch.equal(by_caption[:, 0], torch.arange(match.shape[1])):
                return {"caption_image": by_caption[:, 1].numpy()}
        arrays: dict[str, Array] = {"positives": relations.positives}
        if relations.negatives is not None:
            arrays["negatives"] = relations.negatives
        return arrays

    def weights(self) -> tuple[dict[str, Array], dict[str, str]]:
        """Return W of each direction, or the reason why it cannot be computed; nothing for an unknown objective."""
        batch, objective = self.batch, self.objective
        if objective is None:
            return {}, {}
        rows = {"W": batch.first}
        if batch.second is not None:
            rows["W_second"] = batch.second
        elif not (batch.sides.is_one_set or batch.sides.has_proxies) and "both" not in objective.counted_directions:
            rows["W_second"] = batch.first.t()
        weights: dict[str, Array] = {}
        reasons: dict[str, str] = {}
        for name, of_direction in rows.items():
            try:
                with torch.inference_mode(False):
                    weights[name] = objective(of_direction.S, self._mask_of(of_direction)).W.detach().float().numpy()
            except Exception as error:  # of any kind, as objectives of users may be
                reasons[name] = f"{type(error).__name__}: {error}"
        return weights, reasons

    def _mask_of(self, rows: DirectionRows) -> Mask:
        """Return the mask of rows, with embeddings where the objective needs them."""
        vectors = self.batch.embeddings
        if self.objective is None or not self.objective.traits.needs_embeddings or vectors is None:
            return rows.mask
        first, second = (normalise(x.float()) for x in vectors)
        sides = (first, second) if rows.mask.direction == "i2t" else (second, first)
        return DirectionRows(rows.S, rows.mask, *sides).with_embeddings_in_mask().mask


def on_host(observed: Observed, mask: Mask | None) -> Observed:
    """Return a copy of a batch on the host, safe from later changes in place.

    Args:
        observed: the batch, with rows.
        mask: a copy of the same mask from an earlier step; None: no copy yet.
    """
    rows, back = observed.first, observed.second
    second = None if back is None else DirectionRows(_copy(back.S), _mask_on_host(back.mask))
    vectors = [_copy(x) for x in _vectors_of(observed)]
    return Observed(
        DirectionRows(_copy(rows.S), _mask_on_host(rows.mask) if mask is None else mask), observed.sides,
        observed.directions, second, embeddings=(vectors[0], vectors[-1]) if vectors else None, mined=observed.mined,
    )  # fmt: skip


def _copy(x: Tensor) -> Tensor:
    wide = x.detach().float() if x.dtype not in (torch.float32, torch.float64) else x.detach()
    return wide.to("cpu", copy=True).contiguous()


def _mask_on_host(mask: Mask) -> Mask:
    info = {name: x.detach().to("cpu", copy=True) for name, x in mask.info.items()}
    return Mask(mask.match.to("cpu", copy=True), mask.valid.to("cpu", copy=True), info, mask.direction)


def mask_bytes(mask: Mask) -> int:
    """Return the bytes of the tensors of a mask."""
    return mask.match.nbytes + mask.valid.nbytes + sum(x.nbytes for x in mask.info.values())


def needed_bytes(observed: Observed, ids: Names) -> int:
    """Return the bytes of a copy of a batch, without the mask of its rows, which other steps may share.

    Args:
        observed: the batch, with rows.
        ids: see `names_of`.
    """
    tensors, size = [observed.first.S, *_vectors_of(observed)], 0
    if observed.second is not None:
        tensors.append(observed.second.S)
        size += mask_bytes(observed.second.mask)
    size += sum(x.numel() * (8 if x.dtype == torch.float64 else 4) for x in tensors)
    return size + sum(sys.getsizeof(side) + sum(map(sys.getsizeof, side)) for side in ids if side is not None)


def _vectors_of(observed: Observed) -> tuple[Tensor, ...]:
    """Return the embeddings of both sides, once for one set; none where unknown."""
    vectors = observed.vectors
    if vectors is None:
        return ()
    return vectors[:1] if observed.sides.is_one_set else vectors


def names_of(observed: Observed, ids: BothIds) -> Names:
    """Return ids of both sides as texts. Raises InputError unless there is an id for each item."""
    sides = (observed.sides.first, observed.sides.second)
    first, second = (
        _ids(of_side, n, plural(str(side))) for of_side, n, side in zip(ids, observed.shape, sides, strict=True)
    )  # fmt: skip
    return first, second


def _ids(ids: Ids | None, n: int, name: str) -> tuple[str, ...] | None:
    """Return ids as texts. Raises InputError unless there is an id for each item."""
    if ids is None:
        return None
    plain = ids.tolist() if hasattr(ids, "tolist") else list(ids)
    if len(plain) != n:
        raise InputError(f"ids of {name} must be one per item, {n}; got {len(plain)}")
    return tuple(str(id) for id in plain)
