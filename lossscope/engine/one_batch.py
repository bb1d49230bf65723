"""Run probes on the similarities of one batch: all directions and statistics in a flat row of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import torch
from torch import Tensor

from lossscope.core.sides import IMAGE_TEXT, Sides
from lossscope.core.types import DIRECTIONS, Direction, WeightUnit
from lossscope.errors import InputError
from lossscope.objectives.base import Objective
from lossscope.probes.base import Probe
from lossscope.probes.views.view import BatchShape, DenseRows, View
from lossscope.registry import short_spec, spec_of

from .direction_rows import DirectionRows, zero_unless_finite
from .run_probes import ProbePlan, ProbeResult, label_of, merge_parts
from .shares import Share
from .statistics import Layouts
from .weighed_queries import WeighedQueries


@dataclass(frozen=True)
class OneBatch:
    """Run the probes on one batch under one objective.

    Raises InputError for a probe that needs more than a batch has, or does not support the objective.
    """

    objective: Objective
    probes: tuple[Probe, ...]
    sides: Sides = IMAGE_TEXT  # names of the directions
    directions: tuple[Direction, ...] = DIRECTIONS  # directions to compute, in order

    def __post_init__(self) -> None:
        require_batch_probes(self.probes)
        for probe in self.probes:
            probe.check(self.objective)

    @property
    def needs_embeddings(self) -> bool:
        """Whether a probe reads embeddings."""
        return any("embeddings" in probe.reads for probe in self.probes)

    @cached_property
    def probe_specs(self) -> tuple[str, ...]:
        """The probes with all their options."""
        return tuple(spec_of(probe) for probe in self.probes)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """`i2t/C_neg`, ...; `i2t/PROBE/C_neg` with the probe's spec if two probes have a statistic of the same name.

        `both/C_neg` if the objective has one gradient for both directions; `q2d/C_neg` for other sides.
        """
        return tuple(column for of_direction in self.of_directions for column in of_direction.columns)

    def __call__(self, rows: Sequence[DirectionRows]) -> tuple[bool, list[float]]:
        """Return whether all inputs are finite, and a number for each of `columns`.

        If an embedding or a valid entry of S is not finite, the numbers are those of zeros: nothing raises, and the
        program waits for the device only once.

        Args:
            rows: of the first direction, with embeddings for probes that read them; and of the second direction, unless
                it is S transposed.
        """
        with plain_mode(rows[0].S.device):
            all_finite, rows = self._computable(rows)
            if len(rows) < len(self.directions):
                rows.append(rows[0].t())
            results = [result for index, part in enumerate(rows) for result in self._run(index, part, True)]
            layout = self._layouts.of(results)
            finite, *numbers = torch.cat(
                [all_finite.double()[None], layout.numbers(results).to(all_finite.device)]
            ).tolist()
        # in the order of `columns`; curves are not single numbers
        entries = (entry for of_result in layout.entries for entry in of_result if entry[0].reducer != "curve")
        return bool(finite), [numbers[start] for _, start, _, _ in entries]

    def weighed(self, rows: Sequence[DirectionRows]) -> dict[str, WeighedQueries]:
        """Return name of each direction -> the weights of its queries, in the unit of the first probe that has a unit.

        Args:
            rows: as for a call; zeros stand for NaN and Inf.
        """
        unit: WeightUnit = next((probe.unit for probe in self.probes if hasattr(probe, "unit")), "paper")
        weighed: dict[str, WeighedQueries] = {}
        with plain_mode(rows[0].S.device):
            _, rows = self._computable(rows)
            both = [*rows, rows[0].t()] if len(rows) < len(self.directions) else rows
            for direction, part in zip(self.directions, both, strict=True):
                label = label_of(self.objective, direction)
                if label in self.objective.counted_directions:
                    view, queries = View(dense_rows(part, direction), self.objective), np.arange(len(part.S))
                    of_batch = WeighedQueries.of(view, np.zeros_like(queries), queries, "corrected", unit)
                    weighed[self.sides.label(label)] = of_batch
        return weighed

    def share(
        self, direction: int, parts: Iterable[DirectionRows], number: int, drawn_from: int | None = None
    ) -> tuple[Tensor, Share]:
        """Return () whether the rows are finite, and the results of the probes on them. Call it in `plain_mode`.

        Args:
            direction: index of the rows' direction.
            parts: rows of queries of a batch, a few at a time.
            number: number of these queries; for 0 queries a row of zeros stands in.
            drawn_from: number of queries that the sample was drawn from; None: these are all queries.
        """
        flags, results = [], []
        for rows in parts:
            finite, [computable] = self._computable([rows.pad_if_empty()])
            flags.append(finite)
            results.append(self._run(direction, computable, False))
        merged = [merge_parts(of_probe) for of_probe in zip(*results, strict=True)]
        return torch.stack(flags).all(), Share(self.of_directions[direction], merged, number, drawn_from)

    def _computable(self, rows: Sequence[DirectionRows]) -> tuple[Tensor, list[DirectionRows]]:
        """Return () whether rows are finite, and the rows as objectives read them, zeros if they are not finite."""
        all_finite, rows = zero_unless_finite([of_direction.detach() for of_direction in rows])
        if self.objective.traits.needs_embeddings:
            rows = [of_direction.with_embeddings_in_mask() for of_direction in rows]
        return all_finite, rows

    def _run(self, direction: int, rows: DirectionRows, has_all_queries: bool) -> list[ProbeResult]:
        dense = dense_rows(rows, self.directions[direction], has_all_queries)
        return self.of_directions[direction].run(dense)

    @cached_property
    def _layouts(self) -> Layouts:
        return Layouts()

    @cached_property
    def of_directions(self) -> tuple[ProbePlan, ...]:
        """The probes to run on each direction."""
        plan = ProbePlan.of([self.objective], self.probes, self.sides)
        return tuple(plan.of_direction(direction) for direction in self.directions)


@contextmanager
def plain_mode(device: torch.device) -> Iterator[None]:
    """Compute without graphs and casts, whatever the surrounding loop does."""
    with torch.inference_mode(False), torch.no_grad(), torch.autocast(device.type, enabled=False):
        yield


def require_batch_probes(probes: Sequence[Probe]) -> None:
    """Raise InputError for a probe that needs gradients of layers, which a batch in training does not have."""
    for probe in probes:
        if "gradients" in probe.reads:
            raise InputError(
                f"probes of a batch must not need gradients of layers; got {short_spec(probe)}. Leave it out here, and "
                "probe a checkpoint"
            )


def dense_rows(rows: DirectionRows, direction: Direction, has_all_queries: bool = True) -> DenseRows:
    """Return the rows of a batch as probes read them."""
    shape = _shape(*rows.S.shape, direction, has_all_queries)
    candidates = None if rows.candidates is None else rows.candidates[None]
    return DenseRows(shape, rows.S, rows.mask, rows.queries, candidates)


@lru_cache(maxsize=16)
def _shape(queries: int, candidates: int, direction: Direction, has_all_queries: bool) -> BatchShape:
    return BatchShape(1, direction, torch.arange(queries), torch.arange(candidates)[None], has_all_queries)
