"""How well does every model retrieve? The paper's own table beside the published values, or recall and rsum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from lossscope.io.scores import Score, score_rows
from lossscope.plots import style
from lossscope.tables import retrieval, runs
from lossscope.tables.base import Table

from ..bars import Bar, BarChart
from ..papers import build_paper_tables, is_other_data
from ..sections import Item, Section
from .base import ReportData, has_seeds, over_seeds, panel, split_of

ORDER = 10
TITLE = "How well they retrieve"
_SYSTEM = ("data", "encoder", "objective_label")
_TEXT = "{which} of the {split} split, frozen at the best epoch."
_PUBLISHED = " Published numbers are of the paper's data and models; where ours differ they serve as orientation."


def build(data: ReportData) -> Sequence[Section]:
    """Return tables of recall."""
    rows = data.results.rows
    paper = tuple(build_paper_tables(data.results.paper, rows, data.tests, False, data.results.all_printed))
    recall = rows[rows["probe"] == "recall"]
    items: tuple[Item, ...] = (*_bars(recall, data.score), *(paper or (plain(rows),)))
    which = "Items of one set" if data.sides.is_one_set else "Both directions"
    text = _TEXT.format(which=which, split=split_of(recall)) + (_PUBLISHED if paper else "")
    return [Section(TITLE, text, items, other_data=bool(paper) and is_other_data(rows))]


def _bars(recall: pd.DataFrame, score: Score) -> tuple[BarChart, ...]:
    """Return a bar of the score of each system, a panel for each model and data set, the best first; none without."""
    rows = score_rows(recall).dropna(subset=["mean"])
    if rows.empty:
        return ()
    colours = style.colours(list(map(str, rows["objective_label"].unique())))
    panels = {
        str(name): tuple(_bar(str(label), system, colours, score) for label, system in _best_first(group))
        for name, group in rows.assign(panel=panel(rows)).groupby("panel", sort=False)
    }
    several = f" Circles are single runs. {over_seeds(rows, 'Bars and lines: mean')}" if has_seeds(rows) else ""
    meaning = f"rsum, {score.meaning}" if score.name == "rsum" else score.meaning
    return (BarChart("retrieval_bars", f"{meaning}.{several}", panels, score.name),)


def _bar(label: str, rows: pd.DataFrame, colours: dict[str, str], score: Score) -> Bar:
    values = rows["mean"].astype(float)
    mean, std = float(values.mean()), float(values.std())
    if len(values) == 1:
        return Bar(label, mean, score.number(mean), colours[label])
    text = f"{score.number(mean)} ± {score.number(std)}"
    return Bar(label, mean, text, colours[label], mean - std, mean + std, tuple(values))


def _best_first(rows: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    systems = [(str(label), group) for label, group in rows.groupby("objective_label", sort=False, observed=True)]
    return sorted(systems, key=lambda system: -system[1]["mean"].mean())


def plain(rows: pd.DataFrame) -> Table:
    """Return recall and rsum of every system, mean over its seeds, with a note on seeds that only others have.

    Raises InputError for runs that cannot stand in one table: of other data under one name, two of one seed.
    """
    recall = runs.select_probe(rows, "recall", "retrieval")
    runs.require_comparable(recall, "retrieval")
    table = retrieval.build(rows, _SYSTEM)
    return replace(table, notes=(*table.notes, *_missing_seeds(recall)))


def _missing_seeds(rows: pd.DataFrame) -> list[str]:
    notes = []
    for _, of_data in rows.groupby("data", sort=False, observed=True):
        seeds = set(of_data["seed"].dropna())
        for system, group in of_data.groupby(list(_SYSTEM), sort=False, observed=True):
            missing = ", ".join(f"{seed:g}" for seed in sorted(seeds - set(group["seed"])))
            if missing:
                notes.append(f"seed {missing} of {', '.join(map(str, system))} missing: n = {group['run'].nunique()}.")
    return notes
