"""The curves of a probe, averaged over batches, with its single numbers: the rows that its picture draws."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from lossscope.errors import InputError
from lossscope.io.batch_groups import BatchGroup
from lossscope.probes.base import HasCurves

from .eps_curves import KEYS


def probe_curves(batches: pd.DataFrame, probe: HasCurves) -> pd.DataFrame:
    """Return the mean and standard deviation over batches of all numbers of a probe, with the columns KEYS and below.

    statistic: name of a curve, or of a single number.
    x: point of the curve; NaN for a single number.
    mean, std, n: over the n batches in which the number is defined, as in summary rows; see `BatchGroup`.

    Args:
        batches: rows of a sweep with this probe alone, whose curves are columns of (points,) numbers.
        probe: of the rows.

    Raises:
        InputError: rows have no curve.
    """
    points = probe.points()
    missing = [name for name in points if name not in batches or batches[name].isna().all()]
    if missing:
        raise InputError(f"rows must have the curve {missing[0]}; sweep with curve=true")
    lines = []
    for keys, rows in batches.groupby(list(KEYS), dropna=False, sort=False, observed=True):
        group = BatchGroup.of(rows)
        for name in str(rows["statistics"].iloc[0]).split():
            numbers = np.stack([np.atleast_1d(np.asarray(value, dtype=float)) for value in rows[name]])
            lines.append(
                pd.DataFrame(
                    {
                        **dict(zip(KEYS, keys, strict=True)),
                        "statistic": name,
                        "x": points.get(name, (math.nan,)),
                        "mean": [float(group.mean(column)) for column in numbers.T],
                        "std": [float(group.std(column)) for column in numbers.T],
                        "n": [int(np.isfinite(column).sum()) for column in numbers.T],
                    }
                )
            )
    return pd.concat(lines, ignore_index=True)
