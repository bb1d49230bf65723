"""Could the differences be chance? Paired tests over images, or queries, and over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from lossscope.core.sides import plural
from lossscope.io.scores import Score, score_comparisons
from lossscope.plots import style
from lossscope.tables import comparison

from ..bars import Bar, BarChart
from ..sections import Section
from .base import ReportData, panel_names

ORDER = 15
TITLE = "Could it be chance?"
_LOOK = "Differences with intervals and tests, over test {items} and over seeds."
_TEXT = (
    "Each system against the best of its block. Over {items}: would other test {items} give another order? Over seeds: "
    "would another training? Both are corrected by Holm's method; with three seeds the second can show little."
)
_ONE_SEED = (
    "Each system against the best of its block, over {items}: would other test {items} give another order? Corrected "
    "by Holm's method. Whether another training would give another order is not known: there is one seed of each."
)
_CAPTION = (
    "Difference of {score} to the best of its block, with its {level:g} % bootstrap interval over test {items}, not "
    "corrected. Where an interval holds 0, other {items} could turn the order round."
)


def build(data: ReportData) -> Sequence[Section]:
    """Return intervals and the table of tests, where there is more than one system."""
    if data.comparisons.empty:
        return []
    rows, items = data.comparisons, plural(data.sides.first)
    scored = score_comparisons(rows)
    others = rows[~rows.index.isin(scored.index)]
    defined = scored.dropna(subset=["difference", "ci_low", "ci_high"])
    charts = (_intervals(defined, panel_names(data.results.runs), data.score, items),) if len(defined) else ()
    shown = (comparison.build(scored),) if len(scored) else ()
    more = (replace(comparison.build(others), name="comparison_recalls"),) if len(others) else ()
    text = (_TEXT if rows["n_seeds"].max() > 1 else _ONE_SEED).format(items=items)
    return [Section(TITLE, text, (*charts, *shown), more, _LOOK.format(items=items))]


def _intervals(rows: pd.DataFrame, names: Mapping[tuple[str, str], str], score: Score, items: str) -> BarChart:
    """Return a mark with its interval for each system, a panel for each model and data set."""
    colours = style.colours(list(dict.fromkeys([*map(str, rows["system"]), *map(str, rows["baseline"])])))
    panels = {
        f"{name}: difference to {group['baseline'].iloc[0]}": tuple(
            _bar(row, colours, score) for row in group.sort_values("difference", ascending=False).to_dict("records")
        )
        for name, group in rows.assign(panel=_panels(rows, names)).groupby("panel", sort=False)
    }
    caption = _CAPTION.format(level=100 * rows["level"].iloc[0], score=score.name, items=items)
    return BarChart("comparison_intervals", caption, panels, f"difference of {score.name}", differences=True)


def _panels(rows: pd.DataFrame, names: Mapping[tuple[str, str], str]) -> list[str]:
    return [names[data, encoder] for data, encoder in zip(rows["data"], rows["encoder"], strict=True)]


def _bar(row: Mapping[Any, Any], colours: dict[str, str], score: Score) -> Bar:
    value, low, high = (float(row[name]) for name in ("difference", "ci_low", "ci_high"))
    text = "{0:z.{3}f} [{1:z.{3}f}, {2:z.{3}f}]".format(value, low, high, score.digits).replace("-", "−")
    return Bar(str(row["system"]), value, text, colours[str(row["system"])], low, high)
