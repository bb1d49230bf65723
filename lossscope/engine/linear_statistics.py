"""Statistic of batches ≈ mean of one number per query: what an interval over items adds up.

For a mean it is the query's own number, for others the influence function (`reducers`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

_FEWEST = 8  # numbers that a density is measured from
Scale = Tensor | float  # (n,), or one number for all queries


@dataclass(frozen=True)
class BatchDeviations:
    """What batches deviate by, and what the mean of `values` predicts."""

    sizes: Tensor  # (k,) queries of each batch
    own: Tensor  # (k,) statistic of each batch; NaN where it has none
    predicted: Tensor  # (k,)

    def squares(self) -> tuple[float, float]:
        """Return Σ size² (x − mean)² over batches with a statistic, where x is what is predicted, and the statistic."""
        defined = self.own.isfinite()
        size = self.sizes[defined]
        total = size.sum().clamp(min=1)

        def square(x: Tensor) -> float:
            apart = x[defined].double()
            apart = apart - (apart * size).sum() / total
            return float((size * apart).square().sum())

        return square(self.predicted), square(self.own)


@dataclass(frozen=True)
class LinearStatistic:
    """A statistic of batches as a mean over n queries, and how much it moves with the column of a query."""

    values: Tensor  # (n,) whose weighted mean over all queries is the statistic
    weights: Tensor | None  # (n,) 0 where a query does not count; None: all are 1
    on_effect: Scale = 0.0  # change of `values` when the column of a query changes by 1
    on_any: Scale = 0.0  # change of `values` when the column is no longer above 0
    on_above: float = 0.0  # change of `values` when the column is no longer above the threshold
    threshold: float = 0.0
    leaves: Tensor | None = None  # (n,) change of `values` of a query that has no number any longer
    deviations: BatchDeviations | None = None  # of a statistic that is no mean, in a batch

    def squares(self) -> tuple[float, float]:
        """Return the squares of `deviations`; 0 of a mean."""
        return (0.0, 0.0) if self.deviations is None else self.deviations.squares()

    @property
    def moves(self) -> bool:
        """Whether it depends on the candidates at all."""
        return not (isinstance(self.on_effect, float) and isinstance(self.on_any, float)) or bool(
            self.on_effect or self.on_any or self.on_above
        )


@dataclass(frozen=True, eq=False)
class QueryNumbers:
    """The columns of n queries, batch after batch."""

    columns: Mapping[str, Tensor]  # (n,) each; `skipped` marks queries to be left out
    sizes: Sequence[tuple[int, int]]  # (k, q) of consecutive stacks: k batches of q queries
    full: Tensor | None  # (n,) bool, queries of full batches, which alone count in totals; None: all are
    _kept: dict[tuple[str, bool, bool], Tensor | None] = field(default_factory=dict, init=False, repr=False)
    _weights: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict, init=False, repr=False)

    def keep(self, column: str, counts_skipped: bool, is_total: bool) -> Tensor | None:
        """(n,) bool, the queries that are not left out of a statistic; None: all are kept."""
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
        return self._by_batch(x, lambda part: part.sum(1, keepdim=True))

    def kept(self, keep: Tensor | None) -> Scale:
        """(n,) number of queries of the batch that are kept."""
        if keep is not None:
            return self.sums(keep.double())
        of_sizes = {q for _, q in self.sizes}
        return float(of_sizes.pop()) if len(of_sizes) == 1 else self.sums(torch.ones(self.number))

    def weights(self, keep: Tensor | None) -> Tensor | None:
        """(n,) 0 where a query is left out; each batch has as its sum the number of its queries, 0 if none is kept."""
        if keep is None:
            return None
        if id(keep) not in self._weights:  # what is kept beside it, so that its id stays its own
            size = self._by_batch(keep.double(), lambda part: torch.full_like(part, part.shape[1]))
            self._weights[id(keep)] = (keep, keep * size / self.sums(keep.double()).clamp(min=1))
        return self._weights[id(keep)][1]

    def total_weights(self, keep: Tensor | None) -> Tensor | None:
        """(n,) 0 where a query is left out; each batch has 1 as its sum, as totals of batches count alike."""
        kept = self.kept(keep)
        if isinstance(kept, float):
            return None
        return torch.ones(self.number) / kept if keep is None else keep / kept.clamp(min=1)

    @property
    def number(self) -> int:
        """n, the number of queries."""
        return sum(k * q for k, q in self.sizes)

    def _by_batch(self, x: Tensor, reduce: Callable[[Tensor], Tensor]) -> Tensor:
        """(n,) a number of the batch of each query: `reduce` takes batches (k, q) and returns (k, 1) or (k, q)."""
        parts, start = [], 0
        for k, q in self.sizes:
            part = x[start : start + k * q].reshape(k, q)
            parts.append(reduce(part).expand(k, q).reshape(-1))
            start += k * q
        return torch.cat(parts)

    def quantile(
        self, y: Tensor, keep: Tensor | None, of_batches: Callable[[], Tensor], level: float
    ) -> LinearStatistic | None:
        """Q + (τ − [y ≤ Q]) / density(Q), Q the nearest-rank quantile of all batches; None of a few numbers.

        The density comes from the numbers around Q.

        That of a small batch follows its own numbers: what its quantile deviates further is the remainder.
        """
        y = y.double()
        ordered = (y if keep is None else y[keep]).sort().values
        n = len(ordered)
        if n < _FEWEST:
            return None
        half = 0.4 * n ** (-1 / 3)
        low, high = (round(min(max(at, 0.0), 1.0) * (n - 1)) for at in (level - half, level + half))
        quantile, below, above = ordered[round(level * (n - 1))], ordered[low], ordered[high]
        share = (high - low) / n
        values = quantile + (level - (y <= quantile).double()) * (above - below) / share
        weights = self.weights(keep)
        if keep is not None:
            values = values.where(keep, 0)
        deviations = self._deviations(values, weights, of_batches())
        on_above = float((above - below) / share)
        return LinearStatistic(values, weights, on_above=on_above, threshold=float(quantile), deviations=deviations)

    def _deviations(self, values: Tensor, weights: Tensor | None, of_batches: Tensor) -> BatchDeviations:
        """Return the statistic of each batch beside the mean of `values` over its queries."""
        size = torch.tensor([float(q) for k, q in self.sizes for _ in range(k)], dtype=torch.float64)
        first = torch.tensor([q for k, q in self.sizes for _ in range(k)]).cumsum(0) - size.long()
        predicted = self.sums(values if weights is None else values * weights)[first] / size
        return BatchDeviations(size, of_batches, predicted)
