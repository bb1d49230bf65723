"""What would a softmax loss of another temperature count in the same frozen model?"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from lossscope.plots import what_if
from lossscope.spec import Spec

from ..interactive import SliderChart
from ..sections import Item, Picture, Section
from ._lines import lines, nearest
from .base import ReportData, fold, named, over_seeds, panel

ORDER = 50
_STATISTICS = {"N_eff": "effective number of negatives", "C_neg": "negatives above eps", "W_neg": "weight above eps"}
_TEXT = (
    "Every frozen model, whatever it was trained with, is counted under {loss} at many temperatures. The model does "
    "not change: these are the weights that the loss would give, not the results of training with it."
)


def build(data: ReportData) -> Sequence[Section]:
    """Return a slider over tau, and a picture of each model."""
    rows = _by_temperature(data)
    if rows.empty:
        return []
    loss = Spec.parse(str(rows["objective"].iloc[0])).name
    effective = rows[rows["statistic"] == "N_eff"]
    items: list[Item] = [_slider(effective, loss)] if len(effective) else []
    keys = ["panel", "value", "direction", "statistic"]
    averaged = rows.reindex(columns=[*keys, "mean", "std", "n", "n_spread"]).groupby(keys, sort=False, observed=True)
    mean = averaged.agg({"mean": "mean", "std": "mean", "n": "min", "n_spread": "min"}).reset_index()
    for number, (name, group) in enumerate(mean.groupby("panel", sort=False), 1):
        listed = ", ".join(f"{k}, {v}" for k, v in _STATISTICS.items())
        caption = named(name, mean, f"Mean over all runs: {listed}.")
        figure = what_if.draw_many(group)
        items.append(Picture(f"what_if-{number}", caption, what_if.alt(group), figure, "what_if", group))
    return [
        Section("Counts at other temperatures", _TEXT.format(loss=loss), *fold(items, shown=0 if len(effective) else 2))
    ]


def _by_temperature(data: ReportData) -> pd.DataFrame:
    """Return the rows of the objective at each tau, with a column `value`."""
    rows = data.results.what_if
    if "objective" not in rows or rows.empty:
        return pd.DataFrame()
    tau = rows["objective"].astype(str).str.extract(r"tau=([0-9.e-]+)")[0].astype(float)
    rows = rows.assign(value=tau, panel=panel(rows))
    rows = rows[rows["value"].notna() & rows["statistic"].isin(list(_STATISTICS)) & (rows["probe"] == "cocos")]
    smallest: pd.DataFrame = rows[rows["eps"] == rows["eps"].min()]
    return smallest


def _slider(rows: pd.DataFrame, loss: str) -> SliderChart:
    scale, panels = lines(rows, "value")
    caption = (
        f"Effective number of negatives of {loss} at the slider's temperature, by what the model was trained with. "
        f"{over_seeds(rows)}"
    )
    titles = ("temperature τ", "effective number of negatives", "τ")
    return SliderChart("tau", caption, scale, panels, nearest(scale, 0.1), *titles, label_title="trained with")
