"""Statistic of batches ≈ mean of one number per query, which an interval over items adds up.

For a mean this number is the query's value, for other statistics the influence function (`reducers`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

Keep = Tensor | None  # bool, numbers to keep; None: keep all
Scale = Tensor | float  # (n,), or one number for all queries


class BatchDeviations(NamedTuple):
    """Deviations of batches: observed, and as the mean of `values` predicts them, (k,) each."""

    sizes: Tensor  # queries of each batch
    observed: Tensor  # statistic of each batch; NaN if it is undefined
    predicted: Tensor

    def squares(self) -> tuple[float, float]:
        """Return Σ size² (x − mean)² over batches with a statistic, first for x = predicted, then for x = observed."""
        defined = self.observed.isfinite()
        size = self.sizes[defined]
        apart = torch.stack([self.predicted, self.observed])[:, defined].double()
        apart -= (apart * size).sum(1, keepdim=True) / size.sum().clamp(min=1)
        predicted, observed = (size * apart).square().sum(1).tolist()
        return predicted, observed


@dataclass(frozen=True)
class LinearStatistic:
    """A statistic of batches as a mean over n queries, and how much it changes with the column of a query."""

    values: Tensor  # (n,) their weighted mean over all queries is the statistic
    weights: Tensor | None  # (n,) 0 where a query does not count; None: all are 1
    on_effect: Scale = 0.0  # change of `values` when the column of a query changes by 1
    on_positive: Scale = 0.0  # change of `values` when the column is no longer above 0
    on_above: float = 0.0  # change of `values` when the column is no longer above the threshold
    threshold: float = 0.0
    leaves: Tensor | None = None  # (n,) change of `values` when the number of a query becomes undefined
    deviations: BatchDeviations | None = None  # of batches, for a statistic that is not a mean

    def squares(self) -> tuple[float, float]:
        """Return the squares of `deviations`; 0 for a mean."""
        return (0.0, 0.0) if self.deviations is None else self.deviations.squares()

    @property
    def moves(self) -> bool:
        """Whether the statistic depends on the candidates at all."""
        return not (isinstance(self.on_effect, float) and isinstance(self.on_positive, float)) or bool(
            self.on_effect or self.on_positive or self.on_above
        )


@dataclass(frozen=True, eq=False)
class QueryNumbers:
    """The columns of n queries, batch after batch."""

    columns: Mapping[str, Tensor]  # (n,) each; `skipped` marks queries to leave out
    sizes: Sequence[tuple[int, int]]  # (k, q) of consecutive stacks: k batches of q queries
    full: Tensor | None  # (n,) bool, queries of full batches, which alone count in totals; None: all batches are full
    _kept: dict[tuple[str, bool, bool], Tensor | None] = field(default_factory=dict, init=False, repr=False)
    _weights: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict, init=False, repr=False)

    def keep(self, column: str, counts_skipped: bool, is_total: bool) -> Tensor | None:
        """(n,) bool, the queries that count in a statistic; None: all."""
        key = (column, counts_skipped, is_total and self.full is not None)
        if key not in self._kept:
            keep = ~self.columns[column].cpu().isnan()
            if "skipped" in self.columns and not counts_skipped:
                keep &= ~self.columns["skipped"].cpu().bool()
            if key[2] and self.full is not None:
                keep &= self.full
            self._kept[key] = None if bool(keep.all()) else keep
        return self._kept[key]

    def sums(self, x: Tensor) -> Tensor:
        """(n,) sum over the batch of each query."""
        return self.of_batches(lambda part, _: part.sum(1, keepdim=True).expand_as(part).reshape(-1), x)

    def kept(self, keep: Keep) -> Scale:
        """(n,) number of kept queries in the batch of each query."""
        if keep is not None:
            return self.sums(keep.double())
        of_sizes = {q for _, q in self.sizes}
        return float(of_sizes.pop()) if len(of_sizes) == 1 else self.sums(torch.ones(self.number))

    def weights(self, keep: Keep) -> Tensor | None:
        """(n,) 0 if a query is left out; a batch's weights sum to the number of its queries, or 0 if it keeps none."""
        if keep is None:
            return None
        if id(keep) not in self._weights:  # the tensor is stored too, so that its id stays unique
            size = self.of_batches(lambda part, _: torch.full((part.numel(),), float(part.shape[1])), keep)
            self._weights[id(keep)] = (keep, keep * size / self.sums(keep.double()).clamp(min=1))
        return self._weights[id(keep)][1]

    def total_weights(self, keep: Keep) -> Tensor | None:
        """(n,) 0 if a query is left out; a batch's weights sum to 1, as totals of batches count alike."""
        kept = self.kept(keep)
        if isinstance(kept, float):
            return None
        return torch.ones(self.number) / kept if keep is None else keep / kept.clamp(min=1)

    @property
    def number(self) -> int:
        """n, the number of queries."""
        return sum(k * q for k, q in self.sizes)

    def of_batches(self, reduce: Callable[[Tensor, Keep], Tensor], y: Tensor, keep: Keep = None) -> Tensor:
        """Concatenate `reduce(numbers, keep)` over stacks of batches, (k, q) each."""
        parts, start = [], 0
        for k, q in self.sizes:
            here = slice(start, start := start + k * q)
            parts.append(reduce(y[here].reshape(k, q), None if keep is None else keep[here].reshape(k, q)))
        return torch.cat(parts)
