"""Hold one direction of one or several batches, detached, with the numbers that probes derive from it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lossscope.core.cached import cached_property
from lossscope.core.counts import CountedWeights, CountEffects, Counts
from lossscope.core.row_ops import row_argmax
from lossscope.core.similarity import REPEATS, Mask
from lossscope.core.types import Convention, Direction, Gradients, WeightUnit
from lossscope.errors import InputError
from lossscope.objectives.base import Objective
from lossscope.objectives.counting.block import Buffers
from lossscope.objectives.counting.concentration import Concentration
from lossscope.objectives.counting.fold import RowCounts
from lossscope.objectives.counting.rows import WholeRows
from lossscope.objectives.counting.units import unit_factor, weights_in_unit

if TYPE_CHECKING:
    from lossscope.core.masks.base import BatchItems


@dataclass(frozen=True)
class Extremes:
    """The similarities that decide most of a row, (k·q,) each; NaN, or column −1, if the row lacks them."""

    positive: Tensor  # similarity of the best positive
    hardest: Tensor  # similarity of the hardest negative
    column: Tensor  # of the hardest negative; the first column if several are equal
    above: Tensor  # number of negatives strictly above the best positive: its rank from 0
    ties: Tensor  # number of negatives equal to the best positive


@dataclass(frozen=True)
class BatchShape:
    """k batches of one shape, with q queries and c candidates each."""

    batches: int  # k
    direction: Direction  # queries are of the first side, such as images, or of the second
    query_ids: Tensor  # (k·q,) rows of the queries in their split
    candidate_ids: Tensor  # (k, c) rows of the candidates in their split
    has_all_queries: bool = True  # whether these are all queries of a batch

    @property
    def queries(self) -> int:
        """q, the number of queries of one batch."""
        return len(self.query_ids) // self.batches

    @property
    def candidates(self) -> int:
        """c, the number of candidates of one batch."""
        return self.candidate_ids.shape[1]


class RowsOfS(ABC):
    """Whole rows of S in one direction, without an objective; the rows of k batches of one shape are concatenated."""

    shape: BatchShape

    @property
    @abstractmethod
    def extremes(self) -> Extremes:
        """Best positive, hardest negative and rank of each row."""

    @property
    @abstractmethod
    def skipped(self) -> Tensor:
        """(k·q,) bool: rows without a positive or without a negative."""

    @abstractmethod
    def counts(self, objective: Objective, eps: float, convention: Convention) -> Counts:
        """Return what the objective's paper counts, (k·q,) each."""


@dataclass(frozen=True, eq=False)
class DenseRows(RowsOfS):
    """Rows of S in memory; derived values are computed at their first use and kept."""

    shape: BatchShape
    S: Tensor  # (k·q, c)
    mask: Mask
    queries: Tensor | None = None  # (k·q, d) embeddings, None if only similarities are known
    candidates: Tensor | None = None  # (k, c, d)
    query_keys: Tensor | None = None  # (k·q,) numbers that are equal where the inputs (pixels, words) are equal
    candidate_keys: Tensor | None = None  # (k, c)
    related: Tensor | None = None  # (k·q, c) bool, candidates of the query's item, such as of its image
    all_queries: Tensor | None = None  # (k, n, d) embeddings of all queries of a batch, if `queries` are only a part
    gradients: Gradients | None = None  # if the source has a model, with k = 1
    items: BatchItems | None = None  # the items of rows and columns; None if both sides form one set
    buffers: Buffers | None = None  # memory that the next rows of this direction overwrite
    _counted: dict[tuple[Objective, Convention], CountedWeights] = field(default_factory=dict, init=False, repr=False)
    _row_counts: dict[Objective, RowCounts] = field(default_factory=dict, init=False, repr=False)
    _counts: dict[tuple[Objective, float], Counts] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def whole_rows(self) -> WholeRows:
        """These rows as counting rules and extremes read them."""
        return WholeRows.from_rows(self.S, self.mask, self.buffers)

    @cached_property
    def extremes(self) -> Extremes:
        whole = self.whole_rows
        positive = whole.query_positives.best
        positive = positive.where(positive > -torch.inf, torch.nan)
        none = whole.hardest == -torch.inf
        return Extremes(
            positive,
            whole.hardest.where(~none, torch.nan),
            row_argmax(whole.negatives).where(~none, -1),
            whole.above(positive).sum(1).long(),
            whole.equal_to(positive).sum(1).long(),
        )

    @property
    def skipped(self) -> Tensor:
        return self.mask.skipped

    def counts(self, objective: Objective, eps: float, convention: Convention = "corrected") -> Counts:
        rows = self._counts_by_rule(objective, convention)
        if rows is None:
            return self.counted_weights(objective, convention).threshold(eps)
        if (objective, eps) not in self._counts:
            self._counts[objective, eps] = rows.counts(eps)
        return self._counts[objective, eps]

    def concentration(self, objective: Objective, convention: Convention = "corrected") -> Concentration:
        """Return how concentrated the counted weights of each row are."""
        rows = self._counts_by_rule(objective, convention)
        by_rule = None if rows is None else rows.concentration()
        return Concentration.from_weights(self.counted_weights(objective, convention)) if by_rule is None else by_rule

    def effects(self, objective: Objective, eps: float, convention: Convention = "corrected") -> CountEffects | None:
        """Return the effect of each candidate on the counts, (k·q, c) each; None if no counting rule states it."""
        rows = self._counts_by_rule(objective, convention)
        return None if rows is None else rows.effects(eps)

    def only_similarities(self) -> DenseRows:
        """Return the same rows without embeddings, keys and ids of items."""
        info = {name: value for name, value in self.mask.info.items() if name not in ("queries", "candidates")}
        return DenseRows(self.shape, self.S, replace(self.mask, info=info) if self.mask.info else self.mask)

    def take(self, index: Tensor) -> DenseRows:
        """Return the rows at r indices below k·q as r batches of one query."""
        shape = self.shape
        chosen, batches = index.cpu(), index.cpu() // shape.queries

        def of_rows(x: Tensor | None) -> Tensor | None:
            return None if x is None else x[index.to(x.device)]

        def of_batches(x: Tensor | None) -> Tensor | None:
            return None if x is None else x[batches.to(x.device)]

        items = self.items
        if items is not None:
            items = replace(items, queries=items.queries[chosen.numpy()], candidates=items.candidates[batches.numpy()])
        return DenseRows(
            BatchShape(len(index), shape.direction, shape.query_ids[chosen], shape.candidate_ids[batches], False),
            self.S[index], self.mask.rows(index), of_rows(self.queries), of_batches(self.candidates),
            of_rows(self.query_keys), of_batches(self.candidate_keys), of_rows(self.related),
            of_batches(self.all_queries), None, items,
        )  # fmt: skip

    def without(self, queries: Tensor, candidates: Tensor) -> DenseRows:
        """Return n rows: row i is that of `queries[i]` without the candidate in column `candidates[i]`."""
        rows = self.take(queries)
        valid = rows.mask.valid.clone()
        valid[torch.arange(len(queries), device=valid.device), candidates] = False
        return replace(rows, mask=replace(rows.mask, valid=valid))

    def _counts_by_rule(self, objective: Objective, convention: Convention) -> RowCounts | None:
        """Return the counts by the objective's counting rule; None if it has no rule, so that only weights count."""
        if (
            convention != "corrected"
            or objective.counting_rule is None
            or {*objective.traits.optional_info, REPEATS} & self.mask.info.keys()
        ):
            return None
        if objective not in self._row_counts:
            self.whole_rows.check(objective.traits.positives)
            self._row_counts[objective] = objective.counting_rule.count_rows(self.whole_rows)
        return self._row_counts[objective]

    def counted_weights(self, objective: Objective, convention: Convention = "corrected") -> CountedWeights:
        """Return the weights that the objective's paper thresholds, (k·q, p, c)."""
        key = (objective, convention)
        if key not in self._counted:
            if self._separable(objective) and convention == "corrected":
                self._counted[key] = objective.counted_weights(self.S, self.mask, convention)
            else:
                parts = [objective.counted_weights(S, mask, convention) for S, mask in self._batches]
                self._counted[key] = CountedWeights.concatenate(parts)
        return self._counted[key]

    def weights(self, objective: Objective) -> Tensor:
        """(k·q, c) W = dL/dS."""
        if self._separable(objective):
            return objective(self.S, self.mask).W
        return torch.cat([objective(S, mask).W for S, mask in self._batches])

    def _separable(self, objective: Objective) -> bool:
        """Return whether one call may take all rows: there is one batch, or rows do not influence each other."""
        mixes_rows = objective.coupled or objective.traits.square or objective.traits.needs_embeddings
        return self.shape.batches == 1 or not mixes_rows

    @cached_property
    def _batches(self) -> list[tuple[Tensor, Mask]]:
        """S and mask of each batch."""
        if self.shape.batches == 1:
            return [(self.S, self.mask)]
        parts = torch.split(torch.arange(len(self.S), device=self.S.device), self.shape.queries)
        return [(self.S[rows], self.mask.rows(rows)) for rows in parts]


@dataclass(frozen=True, eq=False)
class View:
    """Rows of S under an objective: the input of a probe. W and counted weights are computed once for all probes."""

    rows_of_s: RowsOfS
    optional_objective: Objective | None  # None for probes without `needs_objective`
    _W: list[Tensor] = field(default_factory=list, init=False, repr=False)

    @property
    def shape(self) -> BatchShape:
        """The number of batches, queries and candidates, and their rows in the split."""
        return self.rows_of_s.shape

    @property
    def objective(self) -> Objective:
        """The objective, for probes with `needs_objective`."""
        assert self.optional_objective is not None, "a probe that uses an objective must set `needs_objective`"
        return self.optional_objective

    @property
    def extremes(self) -> Extremes:
        """Best positive, hardest negative and rank of each row."""
        return self.rows_of_s.extremes

    @property
    def skipped(self) -> Tensor:
        """(k·q,) bool: rows without a positive or without a negative."""
        return self.rows_of_s.skipped

    @property
    def rows(self) -> DenseRows:
        """The rows in memory, for probes whose `reads` need them."""
        assert isinstance(self.rows_of_s, DenseRows), "a probe that uses rows must say so in `reads`"
        return self.rows_of_s

    @property
    def W(self) -> Tensor:
        """(k·q, c) dL/dS of the objective."""
        if not self._W:
            self._W.append(self.rows.weights(self.objective))
        return self._W[0]

    def counts(self, eps: float, convention: Convention = "corrected", unit: WeightUnit | None = None) -> Counts:
        """Return counts of the weights above eps in a unit, (k·q,) each; `paper`: what the objective's paper counts."""
        factor = unit_factor(self.objective, unit)
        if factor is None:
            return self._weights_in_unit(unit).threshold(eps)
        return self.rows_of_s.counts(self.objective, eps / factor, convention).scale_weights(factor)

    def effects(
        self, eps: float, convention: Convention = "corrected", unit: WeightUnit | None = None
    ) -> CountEffects | None:
        """Return the effect of each candidate on `counts`, (k·q, c) each; None where no counting rule states it."""
        factor = unit_factor(self.objective, unit)
        effects = None if factor is None else self.rows.effects(self.objective, eps / factor, convention)
        return None if effects is None or factor is None else effects.scale_weights(factor)

    def counted_weights(self, convention: Convention = "corrected", unit: WeightUnit | None = None) -> CountedWeights:
        """Return the weights that `counts` thresholds, (k·q, p, c)."""
        factor = unit_factor(self.objective, unit)
        if factor is None:
            return self._weights_in_unit(unit)
        return self.rows.counted_weights(self.objective, convention).scale(factor)

    def _weights_in_unit(self, unit: WeightUnit | None) -> CountedWeights:
        return weights_in_unit(self.objective, self.W, self.rows.mask, unit)

    def concentration(self, convention: Convention = "corrected") -> Concentration:
        """Return how concentrated the counted weights of each row are."""
        return self.rows.concentration(self.objective, convention)

    def embeddings(self) -> tuple[Tensor, Tensor]:
        """Return the queries, (k, q, d), and the candidates, (k, c, d). Raises InputError where there are none."""
        rows = self.rows
        if rows.queries is None or rows.candidates is None:
            raise InputError(
                "this probe needs embeddings, and the source has similarities only; use a checkpoint or a dump of "
                "embeddings, or leave the probe out"
            )
        return rows.queries.view(self.shape.batches, -1, rows.queries.shape[1]), rows.candidates
