"""One batch, both directions, every probe: a flat row of numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import torch
from torch import Tensor

from lossscope.core.similarity import Direction, Mask, pair_mask
from lossscope.errors import InputError
from lossscope.objectives.base import Objective
from lossscope.probes.base import Axis, Probe, Reducer, Statistic, reduce_column
from lossscope.probes.views.view import BatchShape, DenseRows
from lossscope.registry import short_spec

from .run_probes import ProbePlan, plan_probes, run_probes

HALF = (torch.float16, torch.bfloat16)


@dataclass(frozen=True)
class OneBatch:
    """Probes on the similarities of one batch under one objective.

    Raises InputError for a probe that asks for more than a batch has, or can not look at the objective.
    """

    objective: Objective
    probes: tuple[Probe, ...]

    def __post_init__(self) -> None:
        for probe in self.probes:
            if "gradients" in probe.reads:
                raise InputError(
                    f"probes of a batch must do without gradients of layers; {short_spec(probe)} asks for them. "
                    "Leave it out here, and probe a checkpoint"
                )
            probe.check(self.objective)

    @property
    def needs_embeddings(self) -> bool:
        """Whether a probe looks at embeddings, too."""
        return any("embeddings" in probe.reads for probe in self.probes)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """`i2t/C_neg`, ...; with the probe's spec in between where two probes have a statistic of one name."""
        told = [(short_spec(probe), statistic.name) for _, probe, statistic in self._statistics]
        times = Counter(name for _, name in told)
        names = [name if times[name] == 1 else f"{probe}/{name}" for probe, name in told]
        return tuple(f"{direction}/{name}" for direction in ("i2t", "t2i") for name in names)

    def __call__(
        self, S: Tensor, mask: Mask, images: Tensor | None = None, captions: Tensor | None = None
    ) -> tuple[bool, list[float]]:
        """S (images, captions) and its i2t mask -> whether all is finite, and a number per column, brought to the host.

        images, captions: embeddings, where probes look at them. Where one of them, or an S that takes part, is not
        finite, the numbers are those of zeros, so that nothing raises and nothing has to wait for the answer.
        """
        with torch.inference_mode(False), torch.no_grad(), torch.autocast(S.device.type, enabled=False):
            S = S.detach().float() if S.dtype in HALF else S.detach()
            known = S.isfinite()
            good = (known if mask.all_valid else known | ~mask.valid).all()
            for side in (images, captions):
                good = good if side is None else good & side.isfinite().all()
            S = S.where(known & good, 0.0)
            images, captions = (None if x is None else _zeroed(x, good) for x in (images, captions))
            if self.objective.needs_embeddings and images is not None and captions is not None:
                mask = replace(mask, info={**mask.info, "queries": images, "candidates": captions})
            looks = _rows(S, mask, images, captions), _rows(S.T.contiguous(), mask.t(), captions, images)
            sides = [[one.columns() for one in run_probes(look, self._asked)] for look in looks]
            together = [sides] if len(S) == S.shape[1] else [[side] for side in sides]
            values = torch.cat([self._reduced(part) for part in together])
            finite, *found = torch.cat([good.double()[None], values.flatten()]).tolist()
        half = len(found) // 2
        return bool(finite), [found[side + place] for side in (0, half) for place in self._places]

    def _reduced(self, sides: Sequence[Sequence[Mapping[str, Tensor]]]) -> Tensor:
        """(sides, statistics) of columns, in the order of `_groups`; sides have as many elements each."""
        found = []
        for (reducer, axis), members in self._groups.items():
            columns = {
                "all": torch.cat([_stacked([side[probe][name] for _, probe, name in members]) for side in sides])
            }
            if axis == "query":
                columns["skipped"] = torch.cat([side[members[0][1]]["skipped"] for side in sides])
            found.append(reduce_column(Statistic("all", "all", reducer, ""), columns, len(sides)))
        return torch.cat(found, 1)

    @cached_property
    def _asked(self) -> ProbePlan:
        return plan_probes([self.objective], self.probes)

    @cached_property
    def _statistics(self) -> list[tuple[int, Probe, Statistic]]:
        """Every number that is asked for, with the place of its question."""
        each = [(probe, probe.statistics(objective)) for objective, probe in self._asked]
        found = [(place, probe, one) for place, (probe, statistics) in enumerate(each) for one in statistics]
        return [item for item in found if item[2].reducer != "curve"]

    @cached_property
    def _groups(self) -> dict[tuple[Reducer, Axis], list[tuple[int, int, str]]]:
        """Statistics that are reduced in one call: (place among all, place of the question, column) of each."""
        groups: dict[tuple[Reducer, Axis], list[tuple[int, int, str]]] = {}
        for place, (question, probe, statistic) in enumerate(self._statistics):
            member = (place, question, statistic.column)
            groups.setdefault((statistic.reducer, probe.axis), []).append(member)
        return groups

    @cached_property
    def _places(self) -> list[int]:
        """Where each statistic is among those of `_groups`."""
        order = [place for members in self._groups.values() for place, _, _ in members]
        return sorted(range(len(order)), key=order.__getitem__)


def mask_of(S: Tensor, mask: Mask | None) -> Mask:
    """The i2t mask given, on the device of S, or that of pairs.

    Raises InputError when S is not of that shape, and for a mask of t2i.
    """
    if S.ndim != 2 or not S.is_floating_point():
        raise InputError(f"S must be (images, captions) of floating point; got {tuple(S.shape)} of {S.dtype}")
    if mask is None:
        if len(S) != S.shape[1] or len(S) < 2:
            raise InputError(f"S of pairs must be (b, b), b at least 2; got {tuple(S.shape)}. Give the mask of others")
        return pair_mask(S)
    if S.shape != mask.match.shape:
        raise InputError(f"S and mask must have one shape; got {tuple(S.shape)} and {tuple(mask.match.shape)}")
    if mask.direction != "i2t":
        raise InputError(f"mask must be i2t, as S has images as rows; got {mask.direction}. Give S.T and mask.t()")
    return mask.to(S.device)


def _zeroed(x: Tensor, good: Tensor) -> Tensor:
    """Embeddings, of zeros where they or what comes with them are not finite."""
    return x.where(x.isfinite() & good, 0.0)


def _stacked(columns: Sequence[Tensor]) -> Tensor:
    """(elements, columns), without a loss of digits where they differ in type."""
    if any(column.dtype != columns[0].dtype for column in columns):
        columns = [column.double() for column in columns]
    return torch.stack(list(columns), -1)


def _rows(S: Tensor, mask: Mask, queries: Tensor | None, candidates: Tensor | None) -> DenseRows:
    shape = _shape(*S.shape, mask.direction)
    return DenseRows(shape, S, mask, queries, None if candidates is None else candidates[None])


@lru_cache(maxsize=16)
def _shape(queries: int, candidates: int, direction: Direction) -> BatchShape:
    return BatchShape(1, direction, torch.arange(queries), torch.arange(candidates)[None])
