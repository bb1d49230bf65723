"""How many samples count at every threshold? C(eps), with a slider along it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ..interactive import Dial, Series
from ..plots import eps_curve, style
from ..report import Item, Picture, Section
from .base import Material, folded, panel

ORDER = 40
_TEXT = (
    "One eps is a point on a curve. Where two curves cross, the order of two losses is a matter of where eps was put. "
    "Weights of different papers have different scales: compare shapes across families, heights within one."
)
_CAPTION = "Samples with a weight above eps per query, mean over seeds; solid image to text, dashed text to image."


def build(material: Material) -> Sequence[Section]:
    """A dial over eps for all models, and a picture of each."""
    curves = material.results.curves
    if "convention" not in curves or curves.empty:
        return []
    curves = curves[(curves["convention"] == "corrected") & (curves["eps"] > 0)]
    curves = curves.assign(panel=panel(curves))
    items: list[Item] = [_dial(curves, material.eps)]
    for place, (name, own) in enumerate(curves.groupby("panel", sort=False), 1):
        mean = own.groupby(["trained", "direction", "eps"], sort=False, observed=True)["mean"].mean().reset_index()
        frame = mean.rename(columns={"trained": "objective"}).assign(source=str(name))
        drawn = eps_curve.draw(frame, at=material.eps).figure
        items.append(Picture(f"eps_curve-{place}", f"{name}. {_CAPTION}", eps_curve.alt(frame, material.eps), drawn))
    return [Section("How many count at every eps", _TEXT, *folded(items))]


def _dial(curves: pd.DataFrame, eps: float) -> Dial:
    scale = np.sort(curves["eps"].unique())
    tints = style.colours(list(map(str, curves["trained"].unique())))
    panels = {}
    for name, own in curves.groupby("panel", sort=False):
        lines = []
        for (label, direction), rows in own.groupby(["trained", "direction"], sort=False, observed=True):
            wide = rows.pivot_table(index="eps", columns="run", values="mean").reindex(scale)
            std = tuple(wide.std(axis=1)) if wide.shape[1] > 1 else None
            lines.append(Series(str(label), str(direction), tuple(wide.mean(axis=1)), std, tints[str(label)]))
        panels[str(name)] = tuple(lines)
    start = int(np.abs(np.log(scale / eps)).argmin())
    caption = "Move the slider: the numbers are samples above eps per query, mean ± sample deviation over seeds."
    return Dial(
        "eps", caption, tuple(scale), panels, start, "threshold ε", "samples above ε per query", "ε", y_log=True
    )
