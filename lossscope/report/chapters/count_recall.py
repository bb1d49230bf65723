"""Do models that count fewer samples retrieve better? The COCOS paper's argument as one picture, with its intervals."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from lossscope.io.scores import Score
from lossscope.plots import count_recall
from lossscope.stats.rank_association import FEWEST_RUNS, LEVEL, RESAMPLES, association
from lossscope.tables.base import Table
from lossscope.tables.cells import Cell

from ..sections import Picture, Section
from ._counts import batches_of, counts_and_score
from ._verdicts import OF_TWO, is_association, verdict_sentence
from .base import ReportData, over_seeds, split_of, unlabelled_pair

ORDER = 30
TITLE = "Fewer samples, better recall?"
_TEXT = (
    "The COCOS paper concludes from its tables: the fewer samples carry the gradient at the end of training, the "
    "better the model retrieves. Here every run is a point, counted per query."
)
_CAPTION = (
    "Samples counted above eps {eps:g} per query (mean over all queries, {counted} split, frozen models) against "
    "{score} on the {ranked} split. {marks} {batches}"
)


def build(data: ReportData) -> Sequence[Section]:
    """Return the picture, the correlation of each panel, and two sentences on it."""
    counts = counts_and_score(data)
    frame = counts.dropna(subset=["count", data.score.name])
    losses = frame.groupby("panel", sort=False)["label"].transform("nunique")
    frame = frame[losses > 1]
    if frame.empty:
        return []
    of_panels = association(counts)
    text = "\n\n".join(
        part for part in (_TEXT, verdict_sentence(of_panels, data.score.name), _true_negatives(data)) if part
    )
    rows = data.corrected_rows("cocos")
    ranked = split_of(data.results.rows[data.results.rows["probe"] == "recall"])
    marks = over_seeds(rows, "Marks and bars: mean")
    caption = _CAPTION.format(
        score=data.score.name,
        eps=data.eps,
        counted=split_of(rows),
        ranked=ranked,
        batches=batches_of(rows),
        marks=marks,
    )
    picture = Picture(
        "count_recall", caption, count_recall.alt(frame), count_recall.draw_many(frame), "count_recall", frame
    )
    return [Section(TITLE, text, (picture, _taus(of_panels, data.score), _numbers(counts, data)))]


def _taus(of_panels: pd.DataFrame, score: Score) -> Table:
    numbers = of_panels[["tau", "low", "high"]].where(of_panels["losses"].map(is_association))
    shown = of_panels.assign(**numbers)
    rows = tuple(
        (
            Cell(text=str(row["panel"])), Cell(text=str(row["direction"])),
            Cell(mean=row["losses"], digits=0), Cell(mean=row["n"], digits=0),
            *(Cell(mean=row[name], digits=2) for name in ("tau", "low", "high")), Cell(text=str(row["verdict"])),
        )
        for row in shown.to_dict("records")
    )  # fmt: skip
    columns = tuple(
        ("", name) for name in ("models", "direction", "losses", "runs", "Kendall's tau", "low", "high", "verdict")
    )
    caption = (
        f"Kendall's tau of count and {score.name}: over pairs of runs of different losses, share in which the one "
        "that counts more retrieves better, less "
        f"the share in which the one that counts fewer does; {LEVEL:.0%} percentile interval of {RESAMPLES:,} "
        "bootstrap resamples of the runs of each loss: the chance of training, not of the choice of losses. A verdict "
        f"needs {FEWEST_RUNS} runs of each loss and an interval without 0."
    )
    if (of_panels["losses"] == 2).any():
        caption += f" {OF_TWO}"
    return Table("count_recall_association", caption, columns, rows)


def _numbers(counts: pd.DataFrame, data: ReportData) -> Table:
    """Return the means and deviations over seeds of the picture, and a note on runs that it cannot show."""
    score, rows = data.score, []
    defined = counts.dropna(subset=["count", score.name])
    for (name, label, direction), group in defined.groupby(["panel", "label", "direction"], sort=False, observed=True):
        count, values = group["count"], group[score.name]
        several = len(group) > 1
        rows.append((
            Cell(text=str(name)), Cell(text=str(label)), Cell(text=str(direction)), Cell(mean=len(group), digits=0),
            Cell(mean=count.mean(), std=count.std() if several else None, digits=2),
            Cell(mean=values.mean(), std=values.std() if several else None, digits=score.digits),
        ))  # fmt: skip
    columns = tuple(("", name) for name in ("models", "loss", "direction", "seeds", "count", score.name))
    caption = f"Numbers of the picture. eps {data.eps:g}. {over_seeds(data.corrected_rows('cocos'))}"
    left_out = list(dict.fromkeys(counts.loc[~counts.index.isin(defined.index), "run"].astype(str)))
    notes = (f"Left out, since count or {score.name} is not defined: {', '.join(left_out)}.",) if left_out else ()
    return Table("count_recall_numbers", caption, columns, tuple(rows), notes)


def _true_negatives(data: ReportData) -> str:
    """Return a sentence on how many negatives match after all, where the data set knows it."""
    rows = data.results.rows
    truth = rows[rows["statistic"] == "true_negatives"].drop_duplicates("data")
    each = [f"{row['data']}: {row['mean']:.3g} %" for row in truth.to_dict("records")]
    which = unlabelled_pair(data.sides, "an image and a caption of another image")
    return f"Share of pairs of {which} that match: {'; '.join(each)}." if each else ""
