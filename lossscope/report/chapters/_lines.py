"""The lines of a slider chart: means over seeds along a scale, for every loss and direction of every panel."""

from __future__ import annotations

import numpy as np
import pandas as pd

from lossscope.plots import style

from ..interactive import Series


def lines(rows: pd.DataFrame, along: str) -> tuple[tuple[float, ...], dict[str, tuple[Series, ...]]]:
    """Return the scale and panel -> lines; deviations are sample deviations over runs.

    Args:
        rows: a row per run and value, with columns panel, objective_label, direction, run, mean.
        along: the column whose values are the scale.
    """
    scale = np.sort(rows[along].unique())
    colours = style.colours(list(map(str, rows["objective_label"].unique())))
    panels: dict[str, tuple[Series, ...]] = {}
    for panel, group in rows.groupby("panel", sort=False):
        series = []
        for (label, direction), part in group.groupby(["objective_label", "direction"], sort=False, observed=True):
            wide = part.pivot_table(index=along, columns="run", values="mean").reindex(scale)
            std = tuple(wide.std(axis=1)) if wide.shape[1] > 1 else None
            mean = tuple(wide.mean(axis=1))
            series.append(Series(str(label), str(direction), mean, std, colours[str(label)]))
        panels[str(panel)] = tuple(series)
    return tuple(scale), panels


def nearest(scale: tuple[float, ...], value: float) -> int:
    """Return the index of the scale's value that is nearest to a value, by ratio."""
    return int(np.abs(np.log(np.asarray(scale) / value)).argmin())
