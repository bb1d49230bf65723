"""How did training go? Loss, rsum, and positive and hardest-negative similarities against epochs."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from lossscope.plots import training, trajectory

from ..page import Item, Picture, Section
from .base import ReportData, folded, panel

ORDER = 60
_TEXT = (
    "On the validation split, after each epoch. Two similarities that run together are a collapse: no query can be "
    "told from another. Losses of different objectives have scales of their own; one that jumps has ended a "
    "warm-up with another loss."
)


def build(material: ReportData) -> Sequence[Section]:
    """Curves of all seeds, and similarities of the first seed, for each model and data set."""
    epochs = material.results.epochs.assign(panel=panel(material.results.epochs))
    items: list[Item] = []
    for place, (name, own) in enumerate(epochs.groupby("panel", sort=False), 1):
        labelled = own.assign(label=own["objective_label"])
        caption = f"{name}. Training loss and validation rsum against epochs, a line per run."
        items.append(Picture(f"training-{place}", caption, training.alt(labelled), training.draw_many(labelled)))
        first = _first(own)
        told = f"{name}, seed {first['seed'].iloc[0]}. Similarity of positives and hardest negatives, 10 to 90 % bands."
        items.append(Picture(f"separation-{place}", told, trajectory.alt(first), trajectory.draw_panels(first)))
    return [Section("How the similarities moved", _TEXT, *folded(items))] if items else []


def _first(rows: pd.DataFrame) -> pd.DataFrame:
    """The runs of the smallest seed, each called by its loss."""
    own: pd.DataFrame = rows[rows["seed"] == rows["seed"].min()]
    return own.assign(run=own["objective_label"])
