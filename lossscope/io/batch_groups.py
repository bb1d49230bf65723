"""Σ queries · x / Σ queries: what is averaged over batches of which the last may be shorter than the others."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

Floats = npt.NDArray[np.float64]
COLUMNS = ("queries", "items", "convention")  # of the rows of batches


@dataclass(frozen=True)
class BatchGroup:
    """The batches that are averaged: how much each counts, and which of them have full size.

    The mean is weighted by the queries of the batches; that of totals of a batch is over full batches. So is the
    deviation: a last batch with fewer items, whose count is another, would be most of it. Convention `released` is as
    published: every batch counts alike in all three.
    """

    weights: Floats  # (n,) of the batches in the mean
    full: npt.NDArray[np.bool_]  # (n,) which batches are in the deviation
    short_batch: int | None  # items of the batch that is left out of the deviation

    @classmethod
    def of(cls, rows: pd.DataFrame) -> BatchGroup:
        """Return the group of rows with COLUMNS, one for each batch."""
        if rows["convention"].iloc[0] == "released":
            return cls(np.ones(len(rows)), np.ones(len(rows), dtype=bool), None)
        items = rows["items"].to_numpy()
        full = np.atleast_1d(items == items.max())
        return cls(rows["queries"].to_numpy(dtype=float), full, None if full.all() else int(items[~full][0]))

    def mean(self, values: Floats) -> Floats:
        """Return the mean of the batches whose values, (n,) or (n, k), are finite; NaN where there is none."""
        defined = _finite(values)
        kept, weights = values[defined], self.weights[defined]
        if not len(kept):
            return np.full(values.shape[1:], math.nan)
        equal = (weights == weights[0]).all()  # then the plain mean, which is not rounded by weights
        mean: Floats = kept.mean(0) if equal else np.average(kept, axis=0, weights=weights)
        return mean

    def mean_of_totals(self, totals: Floats) -> Floats:
        """Return the mean of numbers of a whole batch, such as its idle queries, over full batches."""
        return BatchGroup(self.full.astype(float), self.full, self.short_batch).mean(
            np.where(self.full, totals, np.nan)
        )

    def std(self, values: Floats) -> Floats:
        """Return the population deviation over full batches with finite values; NaN of fewer than two."""
        kept = values[_finite(values) & self.full]
        deviation: Floats = kept.std(0) if len(kept) > 1 else np.full(values.shape[1:], math.nan)
        return deviation

    def n_spread(self, values: Floats) -> int:
        """Return how many batches are in the deviation."""
        return int((_finite(values) & self.full).sum())


def _finite(values: Floats) -> npt.NDArray[np.bool_]:
    return np.atleast_1d(np.isfinite(values).reshape(len(values), -1).all(1))
