"""Which samples carry the gradient? Counts of every convention beside the published ones, and where the weight is."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from lossscope.errors import NoRows
from lossscope.plots import weight_mass
from lossscope.tables import cocos_smoothap, cocos_softmax, cocos_triplet

from ..page import Item, Picture, Section
from ..papers import papers
from .base import ReportData, folded, panel

ORDER = 20
_TEXT = """\
A candidate counts when the weight that the loss gives it, in the scale of the loss's own paper, is above eps.

Columns "released" repeat the counters of the COCOS paper's released code, of which two are wrong for caption queries;
"corrected" counts per query. The difference is in the counter, not in the model."""
_MASS = (
    "Counted weight of a query: on the positive, on negatives above eps, on the rest. Means over batches and seeds. "
    "Weights of different losses have scales of their own; compare shares."
)


def build(material: ReportData) -> Sequence[Section]:
    """Tables of counts, and a picture of where the weight is."""
    items: list[Item] = list(papers(material, counted=True)) or list(_own(material))
    for place, (name, rows) in enumerate(_mass(material).groupby("panel", sort=False), 1):
        if rows["mean"].isna().all():
            continue
        drawn = weight_mass.draw(rows, share=True).figure
        items.append(Picture(f"weight_mass-{place}", f"{name}. {_MASS}", weight_mass.alt(rows), drawn))
    shown, more = folded(items)
    return [Section("Which samples carry the gradient", _TEXT, shown, more)] if items else []


def _own(material: ReportData) -> Sequence[Item]:
    """Without a paper: the layout of the COCOS tables, for the losses that are there."""
    found: list[Item] = []
    for table in (cocos_triplet, cocos_softmax, cocos_smoothap):
        try:
            found.append(table.build(material.results.rows))
        except NoRows:
            continue
    return found


def _mass(material: ReportData) -> pd.DataFrame:
    rows = material.corrected("weight_mass")
    rows = rows[rows["statistic"].isin(["W_pos", "W_neg", "W_low"])]
    rows = rows[rows["eps"] == rows["eps"].min()]  # of one threshold, where several were asked for
    named = rows.assign(label=rows["objective_label"], panel=panel(rows))
    keys = ["panel", "label", "direction", "statistic"]
    means: pd.DataFrame = named.groupby(keys, sort=False, observed=True)["mean"].mean().reset_index()
    return means
