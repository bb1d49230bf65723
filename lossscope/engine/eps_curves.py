"""C(eps): the count that `cocos` reports as a function of eps, averaged over batches."""

from __future__ import annotations

import numpy as np
import pandas as pd

from lossscope.errors import InputError
from lossscope.probes.views.eps_histogram import EDGES

KEYS = ("source", "objective", "direction", "convention", "batch_size", "sampling", "seed")


def eps_curves(batches: pd.DataFrame) -> pd.DataFrame:
    """Return the mean and standard deviation of C(eps) over batches, with the columns KEYS, eps, mean, std and n.

    There is one row for each combination of KEYS and each eps of EDGES. `std` is that of the population; `n` is the
    number of batches in which at least one query has a positive and a negative. Only these are averaged.

    Args:
        batches: rows of a sweep, with the column `curve`, (EDGES,) counts of each batch.

    Raises:
        InputError: no row has a curve.
    """
    if "curve" not in batches or batches["curve"].isna().all():
        raise InputError("rows must have a column curve; sweep with the probe cocos:curve=true")
    with_curve = batches[batches["curve"].notna()]
    lines = []
    for keys, rows in with_curve.groupby(list(KEYS), dropna=False, sort=False, observed=True):
        counts = np.stack([np.asarray(curve, dtype=float) for curve in rows["curve"]])
        counts = counts[~np.isnan(counts).any(1)]
        mean, std = (counts.mean(0), counts.std(0)) if len(counts) else (np.full(len(EDGES), np.nan),) * 2
        columns = dict(zip(KEYS, keys, strict=True))
        lines.append(pd.DataFrame({**columns, "eps": EDGES, "mean": mean, "std": std, "n": len(counts)}))
    return pd.concat(lines, ignore_index=True)
