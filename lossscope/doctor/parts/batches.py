"""What does the objective do in batches of the training's size? Loss, weights, recall, and those of guessing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lossscope.core.batches import Sampling
from lossscope.core.facts import Missing, TooLittle
from lossscope.core.masks.base import NegativeMask
from lossscope.core.similarity import Mask
from lossscope.engine.false_negatives import hide_by_rules
from lossscope.engine.loss_levels import is_logarithm
from lossscope.engine.options import trained_options
from lossscope.engine.small_batches import rows_of_stack
from lossscope.errors import InputError
from lossscope.objectives.base import Objective
from lossscope.probes.views.view import DenseRows
from lossscope.registry import build

from .alignment import probability_of_first
from .items import Items
from .patient import Patient, TrainedWith

_ENTRIES = 1 << 23  # of S in all sampled batches
_MOST, _LEAST = 32, 4  # batches
_QUERIES = 2048  # sampled in small batches
EPS = 0.01  # of a counted weight, as in the COCOS paper
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class QueryStatistics:
    """Numbers of each query of one direction, over all sampled batches."""

    loss: Floats  # NaN for a gradient that is stated directly
    guess: Floats  # loss where all similarities are equal
    candidates: Floats  # number of valid ones
    effective: Floats  # N_eff = (Σ w)² / Σ w² over the counted weights of negatives, as in cocos; NaN without any
    top: Floats  # share of the heaviest negative in their weight; NaN without any
    without: Floats  # 1 where no negative is counted
    first: Floats  # probability that the positive is ranked first, ties broken at random
    positive: Floats  # similarity of the best positive
    hardest: Floats  # of the hardest negative


@dataclass(frozen=True)
class Batches:
    """Statistics of single queries in batches of one size, both directions together."""

    objective: Objective
    batch_size: int  # pairs of the largest batch: fewer than in training where the source has fewer
    queries: QueryStatistics
    needs: ClassVar[tuple[type, ...]] = (TrainedWith, Items)

    @classmethod
    def of(cls, patient: Patient, trained: TrainedWith, _: Items) -> Batches:
        """Compute them on a sample. Raises Missing where the objective does not fit the batches."""
        objective = trained.objective
        if patient.batch_size < 2:
            raise TooLittle("a batch of one pair has no negatives")
        rows, size = [], 0
        try:
            for directions in batch_rows(patient):
                rows.append([query_statistics(objective, direction) for direction in directions])
                size = max(size, len(directions[0].S))
        except InputError as error:
            raise Missing(f"{patient.objective_spec} cannot be computed on its batches: {error}") from None
        if not rows:
            raise TooLittle("it has no batch")
        parts = [part for direction in zip(*rows, strict=True) for part in direction]
        batches = cls.joined(objective, size, parts, "no query of its batches has a positive and a negative")
        if size < (wanted := patient.batch_size):
            patient.notices.append(
                f"loss and weights are those of batches of {size:,}: the source is too small for batches of {wanted:,}"
            )
        return batches

    @classmethod
    def joined(cls, objective: Objective, size: int, parts: Sequence[QueryStatistics], missing: str) -> Batches:
        """Join the queries of batches. Raises Missing, for the reason `missing`, without a query."""
        names = QueryStatistics.__dataclass_fields__
        queries = QueryStatistics(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})
        if not len(queries.positive):
            raise Missing(missing)
        return cls(objective, size, queries)

    @cached_property
    def is_softmax(self) -> bool:
        """Whether guessing costs the logarithm of the number of candidates, as in every cross-entropy over them."""
        return is_logarithm(self.objective)

    def require_softmax(self, spec: str | None) -> None:
        """Raise Missing, with its spec, for an objective that is no softmax."""
        if not self.is_softmax:
            raise Missing(f"{spec} is no softmax over candidates")

    @cached_property
    def loss(self) -> float:
        """Mean loss of a query; NaN for a gradient that is stated directly."""
        return float(np.mean(self.queries.loss))

    @cached_property
    def guess(self) -> float:
        """Mean loss of a query where all similarities are equal."""
        return float(np.mean(self.queries.guess))

    @cached_property
    def recall(self) -> float:
        """Share of the queries whose positive is first in its batch."""
        return float(self.queries.first.mean())

    @cached_property
    def chance(self) -> float:
        """Recall of guessing in the same batches."""
        return float((1 / self.queries.candidates.clip(min=1)).mean())

    @cached_property
    def effective_share(self) -> float:
        """Mean share of the negatives that carry the weight, N_eff over their number."""
        return finite_mean(self.queries.effective / (self.queries.candidates - 1).clip(min=1))


def finite_mean(values: Floats) -> float:
    """Return the mean of the finite values; NaN without any."""
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else math.nan


def batch_rows(patient: Patient) -> Iterator[tuple[DenseRows, ...]]:
    """Yield the rows of both directions of random batches of a sample, drawn and masked as in training."""
    split, objective = patient.part(Items).split, patient.objective
    size, recipe = patient.batch_size, patient.recipe
    options = trained_options(recipe, patient.name)
    rules: list[NegativeMask] = [build("masks", spec) for spec in options.pop("masks", ())]
    if any(rule.needs == "guide" for rule in rules):
        raise Missing("its rule for false negatives needs a guide, which the doctor does not have")
    relations = split.relations
    per_class = 4 if objective.traits.positives == "many" else 2
    if relations.one_set:
        size = max(size // per_class, 2) * per_class
    mode = "classes" if relations.one_set else "proxies" if relations.sides.has_proxies else "pairs"
    sampling = Sampling(mode, size, 0, min_batch_size=2, per_class=per_class, **options)  # type: ignore[arg-type]
    count = min(max(_MOST, _QUERIES // size), max(_LEAST, _ENTRIES // max(size * size, 1)))
    for batch in islice(sampling.batches(relations), count):
        if len(batch.images) < 2:
            continue
        needs = objective.traits.needs_embeddings
        directions = rows_of_stack(
            split, [batch], recipe.get("same_image", "keep"), needs, any(r.needs in ("keys", "related") for r in rules)
        )
        yield tuple(hide_by_rules(direction, rules) for direction in directions) if rules else directions


def query_statistics(objective: Objective, rows: DenseRows) -> QueryStatistics:
    """Return the numbers of each usable query of one direction of a batch, with the rules of the probes."""
    S, mask, extremes = rows.S.detach(), rows.mask, rows.extremes
    weights, counts, concentration = objective(S, mask), rows.counts(objective, EPS), rows.concentration(objective)
    values = torch.full((len(S),), torch.nan) if weights.values is None else weights.values
    columns = (
        values, guess_of(objective, S, mask), mask.valid.sum(1), counts.n_eff, concentration.top1, counts.above == 0,
        probability_of_first(extremes), extremes.positive, extremes.hardest,
    )  # fmt: skip
    return QueryStatistics(*(column[weights.usable].detach().double().cpu().numpy() for column in columns))


def guess_of(objective: Objective, S: Tensor, mask: Mask) -> Tensor:
    """Return the loss of each query where all similarities are 0, (q,); NaN where it is stated directly."""
    values = objective(torch.zeros_like(S), mask).values
    return torch.full((len(S),), torch.nan) if values is None else values
