"""C(eps): the count of `cocos` as a function of eps, averaged over batches."""

from __future__ import annotations

import numpy as np
import pandas as pd

from lossscope.errors import InputError
from lossscope.io.batch_groups import BatchGroup
from lossscope.probes.views.eps_histogram import EDGES

KEYS = ("source", "objective", "direction", "weight_unit", "convention", "batch_size", "sampling", "seed")


def eps_curves(batches: pd.DataFrame) -> pd.DataFrame:
    """Return the mean and standard deviation of C(eps) over batches, with the columns KEYS, eps, mean, std and n.

    Each combination of KEYS and each eps of EDGES has a row. `mean` is weighted by queries, and `std` is the population
    deviation over full batches, see `BatchGroup`. `n` counts the batches in which at least one query has a positive and
    a negative; mean and std are over these batches.

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
        averaged, n = BatchGroup.of(rows), int(np.isfinite(counts).all(1).sum())
        numbers = {"mean": averaged.mean(counts), "std": averaged.std(counts), "n": n}
        lines.append(pd.DataFrame({**dict(zip(KEYS, keys, strict=True)), "eps": EDGES, **numbers}))
    return pd.concat(lines, ignore_index=True)
