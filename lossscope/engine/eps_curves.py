"""C(eps): what `cocos` counts for every eps, from the rows of batches to one line per objective and direction."""

from __future__ import annotations

import numpy as np
import pandas as pd

from lossscope.errors import InputError
from lossscope.probes.views.eps_histogram import EDGES

KEYS = ("source", "objective", "direction", "convention", "batch_size", "sampling", "seed")


def eps_curves(batches: pd.DataFrame) -> pd.DataFrame:
    """Rows of batches with the column `curve` -> the keys, eps, and over batches mean and population std of the count.

    One row for each of EDGES; n is the number of batches in which any query took part, which alone are averaged.
    Raises InputError for rows without a curve.
    """
    if "curve" not in batches or batches["curve"].isna().all():
        raise InputError("rows must have a column curve; sweep with the probe cocos:curve=true")
    some = batches[batches["curve"].notna()]
    found = []
    for keys, part in some.groupby(list(KEYS), dropna=False, sort=False, observed=True):
        counts = np.stack([np.asarray(one, dtype=float) for one in part["curve"]])
        counts = counts[~np.isnan(counts).any(1)]
        some_left = len(counts) > 0
        mean, std = (counts.mean(0), counts.std(0)) if some_left else (np.full(len(EDGES), np.nan),) * 2
        named = dict(zip(KEYS, keys, strict=True))
        found.append(pd.DataFrame({**named, "eps": EDGES, "mean": mean, "std": std, "n": len(counts)}))
    return pd.concat(found, ignore_index=True)
