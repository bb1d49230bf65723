"""How did training go? Loss, retrieval, and positive and hardest-negative similarities against epochs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from lossscope.io.scores import Score, score_of
from lossscope.plots import training, trajectory
from lossscope.spec import Spec
from lossscope.tables.base import Table
from lossscope.tables.cells import Cell

from ..sections import Item, Picture, Section
from .base import ReportData, fold, named, over_seeds, panel

ORDER = 60
TITLE = "How the similarities moved"
_LOOK = "Did training end on a plateau, or within a warm-up?"
_TEXT = (
    "On the validation split, after each epoch. Where both similarities are equal the model has collapsed: no query "
    "can be distinguished from another, and a hinge loss stays at its margin. Losses of different objectives have "
    "different scales; a jump is the end of a warm-up with another loss."
)
_NEAR = 0.05  # relative distance within which a loss is at its plateau


def build(data: ReportData) -> Sequence[Section]:
    """Return curves of all seeds, similarities of the first seed, and where every system ended."""
    epochs = data.results.epochs.assign(panel=panel(data.results.epochs))
    if epochs.empty:
        return []
    ends = _ends(data, epochs)
    items: list[Item] = [_table(ends, over_seeds(epochs), data.score)]
    for number, (name, group) in enumerate(epochs.groupby("panel", sort=False), 1):
        labelled = group.assign(label=group["objective_label"])
        text = f"{training.loss_name(group)} and validation {data.score.name} against epochs, a line per run."
        caption = named(name, epochs, text)
        figure = training.draw_many(labelled)
        items.append(
            Picture(f"training-{number}", caption, training.alt(labelled), figure, "training", _drawn(labelled))
        )
        first = _first(group)
        text = f"Similarity of positives and hardest negatives, 10 to 90 % bands; seed {first['seed'].iloc[0]}."
        caption = named(name, epochs, text)
        figure = trajectory.draw_panels(first)
        items.append(
            Picture(f"separation-{number}", caption, trajectory.alt(first), figure, "trajectory", _drawn(first))
        )
    text = "\n\n".join([_TEXT, *(_sentence(collapse, data.score) for collapse in _collapsed(ends))])
    return [Section(TITLE, text, *fold(items), _LOOK)]


def _drawn(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the columns of which pictures of training are drawn."""
    names = (score_of(rows.columns).name if name == "rsum" else name for name in trajectory.COLUMNS)
    return rows[[name for name in (*names, "warmup", "label") if name in rows]]


@dataclass(frozen=True)
class Collapse:
    """A system whose loss ended at its plateau; numbers are of its runs together."""

    label: str  # of the loss
    setting: str  # model, data
    loss: float  # median of the last epoch
    plateau: float  # the loss when every similarity is equal
    positive: float  # similarity
    negative: float  # of the hardest
    score: float


def collapses(data: ReportData) -> list[Collapse]:
    """Return the systems whose loss ended at its plateau."""
    epochs = data.results.epochs.assign(panel=panel(data.results.epochs))
    return [] if epochs.empty else _collapsed(_ends(data, epochs))


def _ends(data: ReportData, epochs: pd.DataFrame) -> pd.DataFrame:
    recipes, is_image_text = data.results.recipes, data.sides.is_image_text
    ends = [_end(group, recipes[str(run)], is_image_text) for run, group in epochs.groupby("run", sort=False)]
    return pd.DataFrame(ends)


def _first(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the runs of the smallest seed, each labelled by its loss."""
    first: pd.DataFrame = rows[rows["seed"] == rows["seed"].min()]
    return first.assign(run=first["objective_label"])


def _end(rows: pd.DataFrame, recipe: Mapping[str, Any], is_image_text: bool) -> dict[str, Any]:
    """Return the last epoch of a run: median of its loss curve, similarities and score on the validation split."""
    last = rows[rows["split"] == "val"].iloc[-1]
    steps = rows[(rows["split"] == "train") & (rows["epoch"] > last["epoch"] - 1)]
    trained = recipe.get("epochs", 0) > recipe.get("warmup", 0)
    return {
        "panel": last["panel"],
        "label": last["objective_label"],
        "pos": last["pos_mean"],
        "neg": last["neg_mean"],
        "score": last[score_of(rows.columns).name],
        "loss": steps["loss"].median(),
        "plateau": _plateau(str(last["spec"]), recipe, is_image_text) if trained else None,
    }


def _plateau(spec: str, recipe: Mapping[str, Any], is_image_text: bool) -> float | None:
    """Return a summed triplet loss where all similarities are equal, margin × number of hinges; None for others."""
    parsed = Spec.parse(spec)
    whole = recipe.get("reduction") in (None, "sum") and recipe.get("same_image", "keep") == "keep"
    whole = whole and not recipe.get("mask") and is_image_text  # mined negatives make further hinges
    if not whole or "margin" not in parsed.values:
        return None
    batch = int(recipe.get("batch_size", 0))
    hinges = {"triplet": 2 * batch * (batch - 1), "triplet_sh": 2 * batch}.get(parsed.name.replace("-", "_"))
    return None if hinges is None else hinges * float(parsed.values["margin"])


def _table(ends: pd.DataFrame, deviation: str, score: Score) -> Table:
    rows = []
    for (name, label), group in ends.groupby(["panel", "label"], sort=False):
        numbers = (group["pos"], group["neg"], group["pos"] - group["neg"], group["score"], group["loss"])
        digits = (3, 3, 3, score.digits, 2)
        plateau = group["plateau"].dropna()
        rows.append((
            Cell(text=str(name)), Cell(text=str(label)), Cell(mean=len(group), digits=0),
            *(_cell(values, decimals) for values, decimals in zip(numbers, digits, strict=True)),
            Cell(mean=plateau.iloc[0], digits=1) if len(plateau) else Cell(),
        ))  # fmt: skip
    similarities = ("positive", "hardest negative", "difference")
    names = ("models", "loss", "seeds", *similarities, score.name, "loss at end", "plateau")
    caption = (
        f"The end of training: mean similarities and {score.name} on the validation split, median of the loss curve in "
        "the last epoch. plateau: value of a summed triplet loss when all similarities are equal, 2 x batch x margin "
        f"for triplet_sh. {deviation}"
    )
    return Table("training_end", caption, tuple(("", name) for name in names), tuple(rows))


def _cell(values: pd.Series[float], digits: int) -> Cell:
    defined = values.dropna()
    std = float(defined.std()) if len(defined) > 1 else None
    return Cell(mean=float(defined.mean()) if len(defined) else None, std=std, digits=digits)


def _collapsed(ends: pd.DataFrame) -> list[Collapse]:
    found = []
    for (name, label), group in ends.groupby(["panel", "label"], sort=False):
        loss, plateau = float(group["loss"].median()), float(group["plateau"].median())
        if abs(loss - plateau) <= _NEAR * plateau:
            means = (float(group[column].mean()) for column in ("pos", "neg", "score"))
            found.append(Collapse(str(label), str(name), loss, plateau, *means))
    return found


def _sentence(collapse: Collapse, score: Score) -> str:
    ends = f"Positives ended at {collapse.positive:.3f} and hardest negatives at {collapse.negative:.3f}"
    return (
        f"{collapse.label} on {collapse.setting} ended at its plateau: in the last epoch its median loss was "
        f"{collapse.loss:.1f}, and {collapse.plateau:.1f} is the loss when every similarity is equal. {ends}, with "
        f"{score.text(collapse.score)}."
    )
