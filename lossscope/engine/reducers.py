"""How do the numbers of queries, or of other elements, become one statistic? The 13 reducers.

    statistic = value(merge(part(some elements), part(other elements), ...))

This holds for a batch, for several batches at once, and for a batch whose queries are in several processes.
`influence` states the same statistic as a mean over queries, which an interval over items adds up. `interval` gives an
interval for the statistic of all queries if the queries were drawn at random.
Shapes: k batches, n elements of each, m numbers in a part; a column may have further dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from lossscope.core.intervals import NO_INTERVAL, Interval
from lossscope.core.row_ops import sort_rows
from lossscope.probes.base import ReducerName, Statistic

from .linear_statistics import BatchDeviations, Keep, LinearStatistic, QueryNumbers

if TYPE_CHECKING:
    from .sampled.intervals import DrawnNumbers

Influence = Callable[[QueryNumbers, Tensor, Keep], LinearStatistic | None]
_FEWEST = 8  # a density needs as many numbers


class Reducer(NamedTuple):
    """A way in which a column becomes a statistic."""

    part: Callable[[Tensor, Keep], Tensor]  # (k, n, ...) float64 numbers -> (k, m, ...) summary of these elements
    merge: Callable[[Tensor, Tensor], Tensor]  # two parts -> the part of all their elements
    value: Callable[[Tensor], Tensor]  # (k, m, ...) -> (k, ...) statistic; NaN if no element is kept
    influence: Influence | None = None  # None: not a smooth function of means, such as the largest number
    interval: Callable[[DrawnNumbers], Interval] | None = None
    method: str | None = None  # method of the interval of a sample
    is_total: bool = False  # whether the statistic is a number of the whole batch
    counts_skipped: bool = False  # whether skipped queries count, too


def reduce_column(statistic: Statistic, columns: Mapping[str, Tensor], batches: int) -> Tensor:
    """Return the statistic of each batch, (batches,), or (batches, n) for a curve; NaN if no element is left.

    Args:
        statistic: the column and its reducer.
        columns: (batches · elements, ...) each; `skipped` marks queries to leave out.
        batches: number of batches.
    """
    column, skipped, reducer = columns[statistic.column], columns.get("skipped"), REDUCERS[statistic.reducer]
    values = column.reshape(batches, -1, *column.shape[1:])
    return reducer.value(part_of(reducer, values, None if skipped is None else skipped.reshape(batches, -1).bool()))


def part_of(reducer: Reducer, values: Tensor, skipped: Tensor | None) -> Tensor:
    """Return the part that elements add to their statistic, (k, m, ...).

    Args:
        reducer: of the statistic.
        values: (k, n, ...) numbers; NaN is left out.
        skipped: (k, n) bool, further elements to leave out; None: there are none.
    """
    values = values.double()
    if reducer.counts_skipped:
        return reducer.part(values, None)
    if skipped is None and values.device.type == "cpu" and values.ndim == 2:
        part = reducer.part(values, None)
        undefined = part.isnan().any(1)  # most columns have no NaN, and take a single read
        if bool(undefined.any()):
            part[undefined] = reducer.part(values[undefined], ~values[undefined].isnan())
        return part
    keep = ~values.isnan()
    if skipped is not None:
        keep &= ~skipped.view(*skipped.shape, *[1] * (values.ndim - 2))
    return reducer.part(values, keep)


def drawn_interval(name: ReducerName, drawn: DrawnNumbers) -> Interval:
    """Return the interval of a statistic of N queries from a random sample; NaN if the sample is not enough.

    The width is 0 if the sample has all queries.
    """
    if len(drawn.values) >= drawn.population:
        return Interval(drawn.value, drawn.value)
    of = REDUCERS[name].interval
    return NO_INTERVAL if of is None else of(drawn)


def linear_statistic(numbers: QueryNumbers, statistic: Statistic) -> LinearStatistic | None:
    """Return a statistic as a mean over queries; None if it is not a smooth function of means, such as a maximum."""
    reducer, y = REDUCERS[statistic.reducer], numbers.columns[statistic.column].cpu()
    if reducer.influence is None:
        return None
    keep = numbers.keep(statistic.column, reducer.counts_skipped, reducer.is_total)
    return reducer.influence(numbers, y if keep is None else y.where(keep, 0), keep)


def _zero_unless(values: Tensor, keep: Keep) -> Tensor:
    return values if keep is None else values.where(keep, 0.0)


def _number(values: Tensor, keep: Keep) -> Tensor:
    """(k, ...) float64 number of kept elements."""
    if keep is None:
        return values.new_full((len(values), *values.shape[2:]), values.shape[1])
    return keep.sum(1).double()


def _sum_and_number(values: Tensor, keep: Keep) -> Tensor:
    return torch.stack([_zero_unless(values, keep).sum(1), _number(values, keep)], 1)


def _sum_and_number_above_0(values: Tensor, keep: Keep) -> Tensor:
    positive = values > 0
    return _sum_and_number(values, positive if keep is None else keep & positive)


def _sum(values: Tensor, keep: Keep) -> Tensor:
    return _zero_unless(values, keep).sum(1, keepdim=True)


def _number_of_zeros(values: Tensor, keep: Keep) -> Tensor:
    zero = values == 0
    return (zero if keep is None else zero & keep).sum(1, keepdim=True).double()


def _moments(values: Tensor, keep: Keep) -> Tensor:
    """Return number, mean, and sum of squares about the mean."""
    number = _number(values, keep)
    mean = _zero_unless(values, keep).sum(1) / number
    return torch.stack([number, mean, _zero_unless(values - mean[:, None], keep).square().sum(1)], 1)


def _extreme(sign: float, values: Tensor, keep: Keep) -> Tensor:
    """Return the largest number (sign 1) or the smallest (-1), and the number of kept elements."""
    worst = values.new_full((len(values), 1, *values.shape[2:]), -sign * torch.inf)
    padded = torch.cat([values if keep is None else values.where(keep, worst), worst], 1)
    return torch.stack([padded.amax(1) if sign > 0 else padded.amin(1), _number(values, keep)], 1)


def _ordered(values: Tensor, keep: Keep) -> Tensor:
    """(k, n) numbers in ascending order, with the left-out ones as NaN behind them."""
    return sort_rows(values if keep is None else values.where(keep, torch.nan))


def _merge_ordered(first: Tensor, second: Tensor) -> Tensor:
    return sort_rows(torch.cat([first, second], 1))


def _merge_moments(first: Tensor, second: Tensor) -> Tensor:
    """Return number, mean and squares about the joint mean. Source: Chan et al. 1983."""
    (n, a, squares), (m, b, others) = first.unbind(1), second.unbind(1)
    number, a, b = n + m, a.where(n > 0, 0.0), b.where(m > 0, 0.0)
    mean = (n * a + m * b) / number
    apart = squares + others + n * (a - mean).square() + m * (b - mean).square()
    return torch.stack([number, mean, apart.where(number > 0, 0.0)], 1)


def _merge_extremes(sign: float, first: Tensor, second: Tensor) -> Tensor:
    extreme = torch.maximum if sign > 0 else torch.minimum
    return torch.stack([extreme(first[:, 0], second[:, 0]), first[:, 1] + second[:, 1]], 1)


def _first(part: Tensor) -> Tensor:
    return part[:, 0]


def _ratio(part: Tensor) -> Tensor:
    return part[:, 0] / part[:, 1]


def _deviation(part: Tensor) -> Tensor:
    return (part[:, 2] / part[:, 0]).sqrt()


def _if_any(part: Tensor) -> Tensor:
    return part[:, 0].where(part[:, 1] > 0, torch.nan)


def _quantile(level: float, ordered: Tensor) -> Tensor:
    """(k,) nearest-rank quantile."""
    if not ordered.shape[1]:
        return ordered.new_full((len(ordered),), torch.nan)
    number = (~ordered.isnan()).sum(1)
    position = (level * (number - 1).clamp(min=0).double()).round().long()
    return ordered.gather(1, position[:, None])[:, 0]


def _floor_median(ordered: Tensor) -> Tensor:
    """(k,) floor of the median; the median of an even number is the mean of the two middle numbers."""
    if not ordered.shape[1]:
        return ordered.new_full((len(ordered),), torch.nan)
    number = (~ordered.isnan()).sum(1, keepdim=True)
    middle = torch.cat([(number - 1).clamp(min=0) // 2, (number // 2).clamp(max=ordered.shape[1] - 1)], 1)
    return ordered.gather(1, middle).mean(1).where(number[:, 0] > 0, torch.nan).floor()


def _mean_influence(numbers: QueryNumbers, y: Tensor, keep: Keep) -> LinearStatistic:
    weights = numbers.weights(keep)
    total = y.double().sum() if weights is None else (y * weights).sum()
    mean = total / (len(y) if weights is None else weights.sum().clamp(min=1e-300))
    return LinearStatistic(y, weights, 1.0, leaves=y - mean)


def _sum_influence(numbers: QueryNumbers, y: Tensor, keep: Keep) -> LinearStatistic:
    of_batch = numbers.kept(keep)
    return LinearStatistic(y * of_batch, numbers.total_weights(keep), of_batch)


def _zeros_influence(numbers: QueryNumbers, y: Tensor, keep: Keep) -> LinearStatistic:
    of_batch = numbers.kept(keep)
    return LinearStatistic((y == 0) * of_batch, numbers.total_weights(keep), 0.0, -of_batch)


def _true_influence(numbers: QueryNumbers, y: Tensor, keep: Keep) -> LinearStatistic:
    return LinearStatistic((y != 0) * numbers.kept(keep), numbers.total_weights(keep))


def _mean_nonzero_influence(numbers: QueryNumbers, y: Tensor, keep: Keep) -> LinearStatistic:
    """R + (y − R z) / z̄ for the ratio Σ y / Σ z of a batch, with R the ratio of all batches."""
    z = (y > 0).double()
    above = numbers.sums(z)
    defined = above > 0
    keep = defined if keep is None else keep & defined
    keep = None if bool(keep.all()) else keep
    weights = numbers.weights(keep)
    w = 1.0 if weights is None else weights
    ratio = (w * y).sum(dtype=torch.float64) / (w * z).sum().clamp(min=1e-300)
    share = (above / numbers.kept(keep)).where(defined, 1.0)
    of_batch = numbers.sums(y.double()) / above.clamp(min=1)  # the ratio of the batch, which its candidates change
    return LinearStatistic(ratio + (y - ratio * z) / share, weights, 1 / share, -of_batch / share)


def _std_influence(numbers: QueryNumbers, y: Tensor, keep: Keep) -> LinearStatistic:
    of_batch, y = numbers.kept(keep), y.double()
    apart = y - numbers.sums(y) / of_batch
    apart = apart if keep is None else apart.where(keep, 0)
    deviation = (numbers.sums(apart.square()) / of_batch).sqrt()
    usable = deviation > 0 if keep is None else keep & (deviation > 0)
    values = (deviation / 2 + apart.square() / (2 * deviation)).where(usable, 0)
    return LinearStatistic(values, numbers.weights(usable), (apart / deviation).where(usable, 0))


def _quantile_influence(level: float, numbers: QueryNumbers, y: Tensor, keep: Keep) -> LinearStatistic | None:
    """Q + (τ − [y ≤ Q]) / density(Q), with Q the nearest-rank quantile of all batches; None for too few numbers.

    The density comes from the numbers around Q of all batches. The quantile of a small batch deviates more than this
    predicts; `deviations` holds the remainder.
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
    values, weights = quantile + (level - (y <= quantile).double()) * (above - below) / share, numbers.weights(keep)
    if keep is not None:
        values = values.where(keep, 0)
    size = torch.tensor([float(q) for k, q in numbers.sizes for _ in range(k)], dtype=torch.float64)
    sums = numbers.of_batches(lambda part, _: part.sum(1), values if weights is None else values * weights)
    observed = numbers.of_batches(lambda part, kept: _quantile(level, _ordered(part, kept)), y, keep)
    return LinearStatistic(
        values, weights, on_above=float((above - below) / share), threshold=float(quantile),
        deviations=BatchDeviations(size, observed, sums / size),
    )  # fmt: skip


_HYPERGEOMETRIC, _ORDER = "hypergeometric", "order statistics"


def _of_quantile(level: float) -> Reducer:
    value, influence = partial(_quantile, level), partial(_quantile_influence, level)
    return Reducer(_ordered, _merge_ordered, value, influence, lambda drawn: drawn.of_quantile(level), _ORDER)


REDUCERS: Mapping[ReducerName, Reducer] = {
    "mean": Reducer(_sum_and_number, torch.add, _ratio, _mean_influence, lambda drawn: drawn.of_mean(), "t"),
    "mean_nonzero": Reducer(
        _sum_and_number_above_0, torch.add, _ratio, _mean_nonzero_influence,
        lambda drawn: drawn.of_mean_nonzero(), "ratio, t",
    ),
    "sum": Reducer(_sum, torch.add, _first, _sum_influence, lambda drawn: drawn.of_sum(), "t", is_total=True),
    "zeros": Reducer(
        _number_of_zeros, torch.add, _first, _zeros_influence, lambda drawn: drawn.of_zeros(), _HYPERGEOMETRIC,
        is_total=True,
    ),
    "true": Reducer(
        _sum, torch.add, _first, _true_influence, lambda drawn: drawn.of_true(), _HYPERGEOMETRIC,
        is_total=True, counts_skipped=True,
    ),
    "std": Reducer(_moments, _merge_moments, _deviation, _std_influence),
    "min": Reducer(partial(_extreme, -1), partial(_merge_extremes, -1), _if_any),
    "max": Reducer(partial(_extreme, 1), partial(_merge_extremes, 1), _if_any),
    "q10": _of_quantile(0.1),
    "q50": _of_quantile(0.5),
    "q90": _of_quantile(0.9),
    "floor_median": Reducer(
        _ordered, _merge_ordered, _floor_median, interval=lambda drawn: drawn.of_floor_median(), method=_ORDER
    ),
    "curve": Reducer(_sum_and_number, torch.add, _ratio),
}  # fmt: skip
"""Name -> reducer."""
