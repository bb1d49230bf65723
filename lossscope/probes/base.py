"""What a probe is: questions asked of views, whose answers per query, candidate, batch or layer make statistics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

import torch
from torch import Tensor

from lossscope.core.row_ops import in_order
from lossscope.objectives.base import Objective

from .views.view import View

Axis = Literal["query", "candidate", "batch", "layer"]
Merge = Literal["sum", "max", "min"]
Reducer = Literal[
    "mean", "mean_nonzero", "sum", "zeros", "true", "std", "min", "max", "q10", "q50", "q90", "floor_median", "curve"
]
Reads = Literal["counts", "extremes", "rows", "embeddings", "gradients", "keys"]
_QUANTILES = {"q10": 0.1, "q50": 0.5, "q90": 0.9}
_QUICK = ("sum", "mean", "floor_median", *_QUANTILES)


@dataclass(frozen=True)
class Accumulator:
    """A number (or a vector) per element of the probe's axis, and how views of the same elements are put together.

    Views of one batch hold whole rows: of the axis `query` each has elements of its own, which are put one after the
    other and `merge` is not asked.
    """

    value: Tensor
    merge: Merge = "sum"

    def with_(self, other: Accumulator) -> Accumulator:
        """Both views of the same elements."""
        if self.merge == "sum":
            return Accumulator(self.value + other.value, self.merge)
        better = torch.maximum if self.merge == "max" else torch.minimum
        return Accumulator(better(self.value, other.value), self.merge)


Accumulators = Mapping[str, Accumulator]


@dataclass(frozen=True)
class Statistic:
    """A number per batch: a column of the probe reduced over the batch's elements.

    Of queries those that were skipped never take part, except in `true`, which counts. NaN takes no part. `curve` is
    the mean over queries of a vector column and stays a vector.
    """

    name: str
    column: str
    reducer: Reducer
    unit: str


class Probe(Protocol):
    """A frozen dataclass whose fields are its options.

    axis: what it has a number for. reads: what it asks of a view: `counts` and `extremes` are had from tiles of S in
    one pass; `rows` (S, mask, W, counted weights), `embeddings`, `gradients` and `keys` need whole rows. weighs:
    whether it looks at the objective at all; one that does not is asked once for all. cheap: costs a few looks at S,
    so that it is among those taken when none is named.
    """

    axis: ClassVar[Axis]
    reads: ClassVar[frozenset[Reads]]
    needs_objective: ClassVar[bool]
    cheap: ClassVar[bool]

    def tile(self, view: View) -> Accumulators:
        """What one view contributes: query (k·q, ...), candidate (k·c, ...), batch (k, ...), layer (k, layers)."""
        ...

    def finish(self, accumulators: Accumulators) -> dict[str, Tensor]:
        """Column -> one number (or vector) per element of the axis; never averaged here."""
        ...

    def statistics(self, objective: Objective | None) -> tuple[Statistic, ...]:
        """What is reported per batch for this objective; None: the probe weighs none."""
        ...

    def check(self, objective: Objective) -> None:
        """Raise InputError when this probe can not look at that objective; called before any work."""
        ...


def concatenate(axis: Axis, parts: list[Accumulators]) -> dict[str, Accumulator]:
    """What views of one batch contributed, put together: queries one after the other, the rest merged."""
    total = dict(parts[0])
    for name, first in total.items():
        if axis == "query":
            total[name] = Accumulator(torch.cat([part[name].value for part in parts]), first.merge)
        else:
            for part in parts[1:]:
                total[name] = total[name].with_(part[name])
    return total


def reduce_column(statistic: Statistic, columns: Mapping[str, Tensor], batches: int) -> Tensor:
    """(batches,) numbers, or (batches, n) of a curve; NaN where nothing is left to average.

    columns: (batches · elements, ...) each; `skipped` names the queries that take no part.
    """
    column = columns[statistic.column]
    values = column.reshape(batches, -1, *column.shape[1:]).double()
    if statistic.reducer == "true":
        return values.sum(1)
    quick = statistic.reducer in _QUICK and values.device.type == "cpu" and values.ndim == 2 and values.shape[1] > 0
    if quick and "skipped" not in columns:
        found = _of_all(statistic.reducer, values)
        unsure = found.isnan()
        if bool(unsure.any()):
            found[unsure] = _of_some(statistic.reducer, values[unsure], ~values[unsure].isnan())
        return found
    keep = ~values.isnan()
    if "skipped" in columns:
        left = ~columns["skipped"].reshape(batches, -1).bool()
        keep &= left if values.ndim == 2 else left[..., None]
    return _of_some(statistic.reducer, values, keep)


def _of_some(reducer: Reducer, values: Tensor, keep: Tensor) -> Tensor:
    """(batches,) of what is kept."""
    if reducer == "sum":
        return values.where(keep, 0.0).sum(1)
    if reducer == "zeros":
        return ((values == 0) & keep).sum(1).double()
    if reducer == "mean_nonzero":
        keep = keep & (values > 0)
    if reducer == "floor_median":
        return _median(values, keep).floor()
    if reducer in _QUANTILES:
        return _quantile(values, keep, _QUANTILES[reducer])
    number = keep.sum(1).double()
    if reducer in ("min", "max"):
        worst = torch.inf if reducer == "min" else -torch.inf
        found = values.where(keep, worst)
        return (found.amin(1) if reducer == "min" else found.amax(1)).where(number > 0, torch.nan)
    mean = values.where(keep, 0.0).sum(1) / number
    if reducer == "std":
        return ((values - mean[:, None]).where(keep, 0.0).square().sum(1) / number).sqrt()
    return mean


def _of_all(reducer: Reducer, values: Tensor) -> Tensor:
    """The same of all values in fewer passes; NaN where one of them is."""
    n = values.shape[1]
    if reducer == "sum":
        return values.sum(1)
    if reducer == "mean":
        return values.mean(1)
    ordered = in_order(values)
    places = [(n - 1) // 2, n // 2] if reducer == "floor_median" else [round(_QUANTILES[reducer] * (n - 1))]
    found = ordered[:, places].mean(1).where(~ordered[:, -1].isnan(), torch.nan)  # in order, NaN is last
    return found.floor() if reducer == "floor_median" else found


def _quantile(values: Tensor, keep: Tensor, q: float) -> Tensor:
    """(batches,) nearest-rank quantile of what is kept."""
    ordered = in_order(values.where(keep, torch.inf))
    number = keep.sum(1)
    place = (q * (number - 1).clamp(min=0).double()).round().long()
    return ordered.gather(1, place[:, None])[:, 0].where(number > 0, torch.nan)


def _median(values: Tensor, keep: Tensor) -> Tensor:
    """(batches,) middle of what is kept, or the mean of the two in the middle; NaN of nothing."""
    ordered = in_order(values.where(keep, torch.inf))
    number = keep.sum(1, keepdim=True)
    middle = torch.cat([(number - 1).clamp(min=0) // 2, (number // 2).clamp(max=values.shape[1] - 1)], 1)
    return ordered.gather(1, middle).mean(1).where(number[:, 0] > 0, torch.nan)
