"""How hard does each loss pull and push, and where are the queries that it does that to?"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from lossscope.plots import triplet_field

from ..interactive import HeatmapChart
from ..page import Picture, Section
from .base import ReportData, panel

ORDER = 80
_QUERIES = 400  # of a cloud on the page
_FINE = 4  # fields that are told in points of 0.02; of more, 0.04
_TEXT = (
    "Every field is the loss itself, called on queries with one positive and one negative candidate; no formula is "
    "drawn. Right is a similar positive, up a similar negative."
)


def build(material: ReportData) -> Sequence[Section]:
    """A field to point at, with the queries of any model over it, and the same as pictures."""
    if material.fields.empty:
        return []
    frame = material.fields
    caption = "Point at a place for its weight. Circles are queries in their batches: s₊ and the hardest s₋."
    picture = Picture(
        "fields",
        "Weight on the negative, each panel divided by its largest.",
        triplet_field.alt(frame),
        triplet_field.draw_many(frame),
    )
    coarse = _coarse(frame)
    return [
        Section(
            "How hard each loss pushes", _TEXT, (HeatmapChart("field", caption, coarse, _clouds(material)), picture)
        )
    ]


def _coarse(frame: pd.DataFrame) -> pd.DataFrame:
    """Every so many points of each grid, so that the page stays light."""
    points = 101 if frame["objective"].nunique() <= _FINE else 51
    parts = []
    for _, own in frame.groupby("objective", sort=False, observed=True):
        steps = sorted(own["s_pos"].unique())
        keep = set(steps[:: max(1, (len(steps) - 1) // (points - 1))])
        parts.append(own[own["s_pos"].isin(keep) & own["s_neg"].isin(keep)])
    return pd.concat(parts, ignore_index=True)


def _clouds(material: ReportData) -> dict[str, pd.DataFrame]:
    singles = material.results.singles
    if "hardest" not in singles:
        return {}
    rows = singles[(singles["probe"] == "similarity")].dropna(subset=["positive", "hardest"])
    rows = rows[rows["seed"] == rows["seed"].min()]
    named = rows.assign(cloud=rows["objective_label"].astype(str) + ", " + panel(rows))
    found = {}
    for name, own in named.groupby("cloud", sort=False):
        some = own.iloc[:: max(1, len(own) // _QUERIES)]
        found[str(name)] = pd.DataFrame({"s_pos": some["positive"], "s_neg": some["hardest"]})
    return found
