"""What a probe may look at: one direction of one or several batches, detached, and the questions it answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from lossscope.core.counts import Convention, CountedWeights, Counts
from lossscope.core.row_ops import highest
from lossscope.core.similarity import Direction, Mask
from lossscope.errors import InputError
from lossscope.objectives.base import Objective
from lossscope.objectives.counting.base import RowCounts
from lossscope.objectives.counting.concentration import Concentration
from lossscope.objectives.counting.rows import WholeRows

Gradients = Callable[[Tensor], Mapping[str, Tensor]]


@dataclass(frozen=True)
class Extremes:
    """The similarities that decide most of a row. (k·q,) each; NaN and −1 where there is none.

    positive: the best positive. hardest: the hardest negative, column: its column (of equals the first).
    above: negatives strictly above the best positive, which is its 0-based rank. ties: negatives equal to it.
    """

    positive: Tensor
    hardest: Tensor
    column: Tensor
    above: Tensor
    ties: Tensor


@dataclass(frozen=True)
class BatchShape:
    """k batches of one shape, q queries and c candidates each; whole: whether all queries of a batch are here.

    direction: which side the queries are. query_ids (k·q,), candidate_ids (k, c): rows of the items in their split.
    """

    batches: int
    direction: Direction
    query_ids: Tensor
    candidate_ids: Tensor
    whole: bool = True

    @property
    def queries(self) -> int:
        """q, the queries of one batch that are here."""
        return len(self.query_ids) // self.batches

    @property
    def candidates(self) -> int:
        """c, the candidates of one batch."""
        return self.candidate_ids.shape[1]


class RowsOfS(ABC):
    """Whole rows of one direction, without an objective; those of k batches of one shape one after the other."""

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
        """What the objective's paper counts, (k·q,) numbers."""


@dataclass(frozen=True, eq=False)
class DenseRows(RowsOfS):
    """The rows themselves. S: (k·q, c). All else is computed when first asked for, once for all who ask.

    queries (k·q, d) and candidates (k, c, d): embeddings, None where only similarities are known. query_keys (k·q,)
    and candidate_keys (k, c): equal where the inputs were equal. query_groups (k·q,) and candidate_groups (k, c): row
    of the image of each. everyone (k, n, d): all queries of a batch of which only some are here, else None.
    gradients: dL/dS (q, c) -> gradient norm of each layer, where the source has a model (k = 1).
    """

    shape: BatchShape
    S: Tensor
    mask: Mask
    queries: Tensor | None = None
    candidates: Tensor | None = None
    query_keys: Tensor | None = None
    candidate_keys: Tensor | None = None
    query_groups: Tensor | None = None
    candidate_groups: Tensor | None = None
    everyone: Tensor | None = None
    gradients: Gradients | None = None
    _sums: dict[tuple[Objective, Convention], CountedWeights] = field(default_factory=dict, init=False, repr=False)
    _answers: dict[Objective, RowCounts] = field(default_factory=dict, init=False, repr=False)
    _counts: dict[tuple[Objective, float], Counts] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def whole(self) -> WholeRows:
        """What objectives and extremes need of these rows."""
        return WholeRows.of(self.S, self.mask)

    @cached_property
    def extremes(self) -> Extremes:
        whole = self.whole
        positive = whole.known.best
        positive = positive.where(positive > -torch.inf, torch.nan)
        none = whole.hardest == -torch.inf
        return Extremes(
            positive,
            whole.hardest.where(~none, torch.nan),
            highest(whole.negatives).where(~none, -1),
            whole.above(positive).sum(1).long(),
            whole.level(positive).sum(1).long(),
        )

    @property
    def skipped(self) -> Tensor:
        return self.mask.skipped

    def counts(self, objective: Objective, eps: float, convention: Convention = "corrected") -> Counts:
        answer = self._answer(objective, convention)
        if answer is None:
            return self.counted_weights(objective, convention).threshold(eps)
        if (objective, eps) not in self._counts:
            self._counts[objective, eps] = answer.counts(eps)
        return self._counts[objective, eps]

    def spread(self, objective: Objective, convention: Convention = "corrected") -> Concentration:
        """How evenly the counted weights of each row are spread."""
        answer = self._answer(objective, convention)
        told = None if answer is None else answer.spread()
        return Concentration.of(self.counted_weights(objective, convention)) if told is None else told

    def _answer(self, objective: Objective, convention: Convention) -> RowCounts | None:
        """What the objective's form says of the rows; None where only its weights do."""
        if (
            convention != "corrected"
            or objective.counting_rule is None
            or set(objective.optional_info) & self.mask.info.keys()
        ):
            return None
        if objective not in self._answers:
            self.whole.check(objective.positives)
            self._answers[objective] = objective.counting_rule.of(self.whole)
        return self._answers[objective]

    def counted_weights(self, objective: Objective, convention: Convention = "corrected") -> CountedWeights:
        """The weights that the objective's paper thresholds, (k·q, p, c)."""
        key = (objective, convention)
        if key not in self._sums:
            if self._separable(objective) and convention == "corrected":
                self._sums[key] = objective.counted_weights(self.S, self.mask, convention)
            else:
                each = [objective.counted_weights(S, mask, convention) for S, mask in self._batches]
                self._sums[key] = CountedWeights.joined(each)
        return self._sums[key]

    def weights(self, objective: Objective) -> Tensor:
        """(k·q, c) W = dL/dS."""
        if self._separable(objective):
            return objective(self.S, self.mask).W
        return torch.cat([objective(S, mask).W for S, mask in self._batches])

    def _separable(self, objective: Objective) -> bool:
        """Whether rows may be handed over together: one batch, or rows that do not influence each other."""
        return self.shape.batches == 1 or not (objective.coupled or objective.square or objective.needs_embeddings)

    @cached_property
    def _batches(self) -> list[tuple[Tensor, Mask]]:
        """S and mask of each batch."""
        if self.shape.batches == 1:
            return [(self.S, self.mask)]
        parts = torch.split(torch.arange(len(self.S), device=self.S.device), self.shape.queries)
        return [(self.S[rows], self.mask.rows(rows)) for rows in parts]


@dataclass(frozen=True, eq=False)
class View:
    """A look under an objective: all a probe gets. W and the counted weights are made once for all probes that ask.

    A probe that weighs no objective gets none.
    """

    look: RowsOfS
    known: Objective | None
    _W: list[Tensor] = field(default_factory=list, init=False, repr=False)

    @property
    def shape(self) -> BatchShape:
        """How many batches, queries and candidates, and which they are."""
        return self.look.shape

    @property
    def objective(self) -> Objective:
        """The objective, for probes that weigh one."""
        assert self.known is not None, "a probe must say in `needs_objective` that it looks at an objective"
        return self.known

    @property
    def extremes(self) -> Extremes:
        """Best positive, hardest negative and rank of each row."""
        return self.look.extremes

    @property
    def skipped(self) -> Tensor:
        """(k·q,) bool: rows without a positive or without a negative."""
        return self.look.skipped

    @property
    def rows(self) -> DenseRows:
        """The rows themselves, for probes whose `reads` say that they need them."""
        assert isinstance(self.look, DenseRows), "a probe must say in `reads` that it needs rows"
        return self.look

    @property
    def W(self) -> Tensor:
        """(k·q, c) dL/dS of the objective."""
        if not self._W:
            self._W.append(self.rows.weights(self.objective))
        return self._W[0]

    def counts(self, eps: float, convention: Convention = "corrected") -> Counts:
        """What the objective's paper counts, (k·q,) numbers."""
        return self.look.counts(self.objective, eps, convention)

    def counted_weights(self, convention: Convention = "corrected") -> CountedWeights:
        """The weights that the objective's paper thresholds, (k·q, p, c)."""
        return self.rows.counted_weights(self.objective, convention)

    def spread(self, convention: Convention = "corrected") -> Concentration:
        """How evenly the counted weights of each row are spread."""
        return self.rows.spread(self.objective, convention)

    def embeddings(self) -> tuple[Tensor, Tensor]:
        """(k, q, d) of the queries and (k, c, d) of the candidates. Raises InputError where there are none."""
        rows = self.rows
        if rows.queries is None or rows.candidates is None:
            raise InputError(
                "this probe needs embeddings, and the source has similarities only; use a checkpoint or a dump of "
                "embeddings, or leave the probe out"
            )
        return rows.queries.view(self.shape.batches, -1, rows.queries.shape[1]), rows.candidates
