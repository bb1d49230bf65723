"""Which samples carry the gradient? Counts of every convention beside the published ones, and where the weight is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from lossscope.errors import NoRows
from lossscope.plots import weight_mass
from lossscope.tables import cocos_smoothap, cocos_softmax, cocos_triplet
from lossscope.tables.base import Table

from ..papers import build_paper_tables, is_other_data
from ..sections import Item, Picture, Section
from .base import ReportData, fold, named, panel

ORDER = 20
TITLE = "Which samples carry the gradient"
_LOOK = "How many negatives, and how much of the weight they carry."
_TEXT = "A candidate counts when the weight that the loss gives it, in the scale of the loss's own paper, is above eps."
_RELEASED = """\
Columns "released" repeat the counters of the COCOS paper's released code; two of these are wrong for caption queries;
"corrected" counts per query. The difference is in the counter, not in the model."""
_MASS = (
    "Where the weight on the negatives of a query is: the share of it above eps, its total, and on how many negatives "
    "it is. Weights of different losses have scales of their own; compare shares and numbers of negatives."
)


def build(data: ReportData) -> Sequence[Section]:
    """Return tables of counts, and a picture of where the weight is."""
    rows = data.results.rows
    items: list[Item] = list(build_paper_tables(data.results.paper, rows, data.tests, True, data.results.all_printed))
    items = items or list(_count_tables(rows))
    mass = _weight_mass(data)
    for number, (name, group) in enumerate(mass.groupby("panel", sort=False), 1):
        if group["mean"].isna().all():
            continue
        figure = weight_mass.draw_many(group)
        items.append(
            Picture(
                f"weight_mass-{number}", named(name, mass, _MASS), weight_mass.alt(group), figure, "weight_mass", group
            )
        )
    shown, more = fold(items)
    other = is_other_data(rows) if data.results.paper else False
    text = f"{_TEXT}\n\n{_RELEASED}" if data.sides.is_image_text else _TEXT
    return [Section(TITLE, text, shown, more, _LOOK, other)] if items else []


def _count_tables(rows: pd.DataFrame) -> Iterator[Table]:
    """Return the tables of a report without a paper: the layout of the COCOS tables, for its losses."""
    for table in (cocos_triplet, cocos_softmax, cocos_smoothap):
        try:
            yield table.build(rows)
        except NoRows:
            continue


def _weight_mass(data: ReportData) -> pd.DataFrame:
    """Return the weight on negatives, and the number it is concentrated on, of every seed."""
    mass, counts = data.corrected_rows("weight_mass"), data.corrected_rows("cocos")
    eps = mass["eps"].min()  # one threshold, where there are several
    rows = pd.concat([
        mass[(mass["eps"] == eps) & mass["statistic"].isin(["W_neg", "W_low"])],
        counts[(counts["eps"] == eps) & (counts["statistic"] == "N_eff")],
    ])  # fmt: skip
    labelled = rows.assign(label=rows["objective_label"], panel=panel(rows))
    keys = ["panel", "label", "direction", "statistic", "seed"]
    means: pd.DataFrame = labelled.groupby(keys, sort=False, observed=True)["mean"].mean().reset_index()
    return means
