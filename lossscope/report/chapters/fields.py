"""How hard does each loss pull and push, and at which similarities are the queries of a model?"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from lossscope.plots import triplet_field

from ..interactive import HeatmapChart
from ..sections import Picture, Section
from .base import ReportData, panel

ORDER = 80
_LOOK = "Point at a weight field: where each loss pushes, and where the queries are."
_QUERIES = 400  # of a cloud on the page
_FINE = 8  # up to this number of fields they have points every 0.02, else every 0.04
_TEXT = (
    "Every field shows the weights that the loss itself returns for queries with one positive and one negative "
    "candidate; no formula is drawn. To the right the positive is more similar, upwards the negative."
)


def build(data: ReportData) -> Sequence[Section]:
    """Return an interactive heatmap, with the queries of any model over it, and the same as a picture."""
    fields = data.diagrams.fields
    if fields.empty:
        return []
    caption = (
        "Two losses side by side; lines join places of equal weight. Point at a place for its weight. Circles are "
        "queries in their batches: s₊ and the hardest s₋."
    )
    chart = HeatmapChart("field", caption, _coarse(fields), _clouds(data))
    caption = "Weight on the negative, each panel divided by its largest."
    picture = Picture("fields", caption, triplet_field.alt(fields), triplet_field.draw_many(fields))
    return [Section("How hard each loss pushes", _TEXT, (chart,), (picture,), _LOOK)]


def _coarse(fields: pd.DataFrame) -> pd.DataFrame:
    """Every n-th point of each grid, so that the page stays light.

    Rows are those between the columns, where there are any: an edge such as s₋ = s₊ − margin then meets no point.
    """
    points = 101 if fields["objective"].nunique() <= _FINE else 51
    parts = []
    for _, group in fields.groupby("objective", sort=False, observed=True):
        steps = sorted(group["s_pos"].unique())
        stride = max(1, (len(steps) - 1) // (points - 1))
        parts.append(group[group["s_pos"].isin(steps[::stride]) & group["s_neg"].isin(steps[stride // 2 :: stride])])
    return pd.concat(parts, ignore_index=True)


def _clouds(data: ReportData) -> dict[str, pd.DataFrame]:
    """Return label -> similarities of queries of the first seed."""
    queries = data.results.per_query
    if "hardest" not in queries:
        return {}
    rows = queries[(queries["probe"] == "similarity")].dropna(subset=["positive", "hardest"])
    rows = rows[rows["seed"] == rows["seed"].min()]
    labelled = rows.assign(cloud=rows["objective_label"].astype(str) + ", " + panel(rows))
    clouds = {}
    for name, group in labelled.groupby("cloud", sort=False):
        sample = group.iloc[:: max(1, len(group) // _QUERIES)]
        clouds[str(name)] = pd.DataFrame({"s_pos": sample["positive"], "s_neg": sample["hardest"]})
    return clouds
