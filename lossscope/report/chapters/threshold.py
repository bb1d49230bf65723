"""How many samples count at every threshold? C(eps), with a slider along it."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from lossscope.plots import eps_curve

from ..interactive import SliderChart
from ..sections import Item, Picture, Section
from ._lines import lines, nearest
from .base import ReportData, fold, has_seeds, named, over_seeds, panel

ORDER = 40
_LOOK = "Move eps: the order of two losses can depend on it."
_TEXT = (
    "A count at one eps is one point of a curve. Where two curves cross, the order of two losses depends on eps. "
    "Weights of different papers have different scales: compare shapes across families, heights within one."
)
_CAPTION = "Samples with a weight above eps per query{mean}{lines}."


def build(data: ReportData) -> Sequence[Section]:
    """Return a slider over eps for all models, and a picture of each."""
    curves = data.results.curves
    if "convention" not in curves or curves.empty:
        return []
    curves = curves[(curves["convention"] == "corrected") & (curves["eps"] > 0)]
    curves = curves.assign(panel=panel(curves))
    items: list[Item] = [_slider(curves, data.eps)]
    names = [data.sides.words(label) for label in data.sides.labels]
    lines_are = "" if len(names) < 2 else f"; solid {names[0]}, dashed {names[1]}"
    caption = _CAPTION.format(mean=", mean over seeds" if has_seeds(curves) else "", lines=lines_are)
    for number, (name, group) in enumerate(curves.groupby("panel", sort=False), 1):
        keys = ["objective_label", "direction", "eps"]
        mean = group.groupby(keys, sort=False, observed=True)["mean"].mean().reset_index()
        frame = mean.rename(columns={"objective_label": "objective"}).assign(source=str(name))
        figure = eps_curve.draw(frame, at=data.eps).figure
        items.append(
            Picture(
                f"eps_curve-{number}",
                named(name, curves, caption),
                eps_curve.alt(frame, data.eps),
                figure,
                "eps_curve",
                frame,
            )
        )
    return [Section("How many count at every eps", _TEXT, *fold(items, shown=0), _LOOK)]


def _slider(curves: pd.DataFrame, eps: float) -> SliderChart:
    scale, panels = lines(curves, "eps")
    caption = f"Move the slider: the numbers are samples above eps per query. {over_seeds(curves)}"
    titles = ("threshold ε", "samples above ε per query", "ε")
    return SliderChart("eps", caption, scale, panels, nearest(scale, eps), *titles, y_log=True)
