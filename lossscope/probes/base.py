"""What a probe is: a fold over tiles of W, so that the same probe runs dense, tiled and on many ranks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Literal, Protocol

import torch
from torch import Tensor

from ..objectives.base import Convention, Counted, Objective
from ..similarity import Mask

Axis = Literal["query", "candidate", "batch", "set", "layer"]
Merge = Literal["sum", "max", "histogram", "first_argmax"]
Reducer = Literal["mean", "mean_nonzero", "sum", "zeros", "true"]


@dataclass(frozen=True)
class View:
    """All a probe may look at: one tile of one direction of one batch, detached. Dense is one tile.

    S, W: (q, c). queries (q, d) and candidates (c, d): embeddings, None where only similarities are known or no
    probe needs them. query_ids (q,), candidate_ids (c,): rows of the items in their split.
    W and the counted weights are computed when first asked for, once for all probes that look.
    """

    S: Tensor
    mask: Mask
    objective: Objective
    queries: Tensor | None
    candidates: Tensor | None
    query_ids: Tensor
    candidate_ids: Tensor
    _counted: dict[str, Counted] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def W(self) -> Tensor:
        """(q, c) dL/dS of the objective."""
        return self.objective(self.S, self.mask).W

    def counted(self, convention: Convention) -> Counted:
        """The tile of weights that the objective's paper thresholds."""
        if convention not in self._counted:
            self._counted[convention] = self.objective.counted(self.S, self.mask, convention)
        return self._counted[convention]


@dataclass(frozen=True)
class Accumulated:
    """A number per element of the probe's axis, and how two tiles of the same elements are put together."""

    value: Tensor
    merge: Merge

    def with_(self, other: Accumulated) -> Accumulated:
        """Both tiles. first_argmax: value is (n, 2) of (maximum, index), of equals the smaller index."""
        if self.merge in ("sum", "histogram"):
            return Accumulated(self.value + other.value, self.merge)
        if self.merge == "max":
            return Accumulated(torch.maximum(self.value, other.value), self.merge)
        a, b = self.value, other.value
        better = (b[:, 0] > a[:, 0]) | ((b[:, 0] == a[:, 0]) & (b[:, 1] < a[:, 1]))
        return Accumulated(torch.where(better[:, None], b, a), self.merge)


Accumulators = Mapping[str, Accumulated]


@dataclass(frozen=True)
class Statistic:
    """A number per batch: a column of the probe reduced over the batch's queries that were not skipped."""

    name: str
    column: str
    reducer: Reducer
    unit: str


class Probe(Protocol):
    """A frozen dataclass whose fields are its options."""

    axis: ClassVar[Axis]
    needs_embeddings: ClassVar[bool]

    def tile(self, view: View) -> Accumulators:
        """What one tile contributes."""
        ...

    def finish(self, accumulators: Accumulators) -> dict[str, Tensor]:
        """Column -> one number (or vector) per element of the axis; never averaged here."""
        ...

    def statistics(self, objective: Objective) -> tuple[Statistic, ...]:
        """What is reported per batch for this objective."""
        ...

    def check(self, objective: Objective) -> None:
        """Raise InputError when this probe can not look at that objective; called before any work."""
        ...


def fold(probe: Probe, views: list[View]) -> dict[str, Tensor]:
    """The probe's columns over the tiles of one set of queries."""
    total: dict[str, Accumulated] = dict(probe.tile(views[0]))
    for view in views[1:]:
        for name, part in probe.tile(view).items():
            total[name] = total[name].with_(part)
    return probe.finish(total)


def reduce(statistic: Statistic, columns: Mapping[str, Tensor]) -> float:
    """One number of a batch; NaN where nothing is left to average. `skipped` rows never take part."""
    values = columns[statistic.column].double()
    if statistic.reducer == "true":
        return float(values.sum())
    values = values[~columns["skipped"].bool()]
    if statistic.reducer == "sum":
        return float(values.sum())
    if statistic.reducer == "zeros":
        return float((values == 0).sum())
    if statistic.reducer == "mean_nonzero":
        values = values[values > 0]
    values = values[~values.isnan()]
    return float(values.mean()) if len(values) else float("nan")
