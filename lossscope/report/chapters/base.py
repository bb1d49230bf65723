"""What a chapter of the report is: one file with ORDER and `build(data)`, which returns its sections."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from lossscope.core.sides import IMAGE_TEXT, Sides, with_article
from lossscope.io.frames import SIDES
from lossscope.io.scores import Score, score_of

from ..results import Results
from ..sections import Item, Picture, Section

Build = Callable[["ReportData"], Sequence[Section]]


@dataclass(frozen=True)
class Diagrams:
    """Weights of losses as functions of similarities; empty frames where nothing is drawn."""

    fields: pd.DataFrame = field(default_factory=pd.DataFrame)  # columns of `weight_field`, keyed by label
    goal_fields: pd.DataFrame = field(default_factory=pd.DataFrame)  # triplet weights of GOAL, Figure 2
    goal_curves: pd.DataFrame = field(default_factory=pd.DataFrame)  # pair weights of GOAL, Figure 3
    goal_losses: pd.DataFrame = field(default_factory=pd.DataFrame)  # which losses they are, Table 1


@dataclass(frozen=True)
class ReportData:
    """The numbers that chapters draw."""

    results: Results
    comparisons: pd.DataFrame = field(default_factory=pd.DataFrame)  # of `compare`; empty: nothing to compare
    tests: pd.DataFrame | None = None  # `significance` of the comparisons
    diagrams: Diagrams = field(default_factory=Diagrams)

    @property
    def score(self) -> Score:
        """The number that runs are compared by: rsum, or nDCG@10."""
        return score_of(self.results.rows["statistic"])

    @property
    def sides(self) -> Sides:
        """What the two sides of the data are called."""
        return sides_of(self.results.rows)

    @property
    def eps(self) -> float:
        """The eps of most counts; 0.01 where there are none."""
        values = self.results.rows["eps"].dropna()
        return float(values.mode().iloc[0]) if len(values) else 0.01

    def of_runs(self, runs: Collection[str]) -> ReportData:
        """Return the data of these runs alone; comparisons are of systems, and stay."""
        return replace(self, results=self.results.of_runs(runs))

    def corrected_rows(self, probe: str) -> pd.DataFrame:
        """Return the summary rows of a probe, counted per query."""
        rows = self.results.rows[self.results.rows["probe"] == probe]
        counted: pd.DataFrame = rows[rows["convention"].isna() | (rows["convention"] == "corrected")]
        return counted


def sides_of(rows: pd.DataFrame) -> Sides:
    """Return the sides that summary rows state; images and captions where they state none."""
    stated = list(rows[SIDES].dropna().unique()) if SIDES in rows else []
    return Sides.parse(str(stated[0])) if stated else IMAGE_TEXT


def unlabelled_pair(sides: Sides, image_text: str) -> str:
    """Return `a query and a document that is not its positive`; of images and captions the words that are given."""
    if sides.is_image_text:
        return image_text
    label = sides.labels[0]
    return f"{with_article(sides.query(label))} and {with_article(sides.candidate(label))} that is not its positive"


def build_sections(data: ReportData) -> list[Section]:
    """Return the sections of every chapter, by ORDER."""
    return [section for build in _builders() for section in build(data)]


def _builders() -> Iterator[Build]:
    modules = (module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]))
    names = [name for name in modules if name != "base" and not name.startswith("_")]
    chapters: list[Any] = [importlib.import_module(f"{__package__}.{name}") for name in names]
    for chapter in sorted(chapters, key=lambda chapter: (chapter.ORDER, chapter.__name__)):
        yield chapter.build


def split_of(rows: pd.DataFrame) -> str:
    """Return `test`, or `train and val` where rows are of several splits."""
    return " and ".join(map(str, rows["split"].dropna().unique())) or "unknown"


def fold(items: Sequence[Item], shown: int = 2) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
    """Return the items shown at once, all but pictures and the first `shown` pictures, and the pictures folded away."""
    pictures = [item for item in items if isinstance(item, Picture)]
    first = [item for item in items if not isinstance(item, Picture) or item in pictures[:shown]]
    return tuple(first), tuple(pictures[shown:])


def panel(rows: pd.DataFrame) -> pd.Series[str]:
    """Return `VSE++, scenes`: the model, and the data where there are several."""
    encoder, data = rows["encoder"].astype(str), rows["data"].astype(str)
    if data.nunique() == 1:
        return encoder
    return data if encoder.nunique() == 1 else encoder + ", " + data


def named(name: object, rows: pd.DataFrame, text: str) -> str:
    """Return a caption, after the name of its panel where the rows have several.

    Args:
        name: of the panel.
        rows: of all panels, with a column `panel`.
        text: of the caption.
    """
    return f"{name}. {text}" if rows["panel"].nunique() > 1 else text


def panel_names(runs: pd.DataFrame) -> dict[tuple[str, str], str]:
    """Return (data, encoder) -> panel for all runs of a report, so that a part of them has the same names."""
    names = zip(runs["data"].astype(str), runs["encoder"].astype(str), panel(runs), strict=True)
    return {(data, encoder): name for data, encoder, name in names}


def over_seeds(rows: pd.DataFrame, mean: str = "Mean") -> str:
    """Return what ± is: `Mean ± sample standard deviation over 3 seeds.`, and that of one seed there is none.

    Args:
        rows: with columns seed, data, encoder and objective_label.
        mean: how the sentence begins.
    """
    sizes = _seeds(rows)
    if sizes[-1] == 1:
        return "One seed each, so no deviation."
    number = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    parts = [f"{mean} ± sample standard deviation over {number} seeds"]
    parts += ["of one seed there is none"] if 1 in sizes else []
    parts += ["of two it is 0.71 times their distance"] if 2 in sizes else []
    return "; ".join(parts) + "."


def has_seeds(rows: pd.DataFrame) -> bool:
    """Return whether any system was trained with several seeds."""
    return _seeds(rows)[-1] > 1


def _seeds(rows: pd.DataFrame) -> list[int]:
    """Return the different numbers of seeds of systems, the smallest first."""
    return sorted(set(rows.groupby(["data", "encoder", "objective_label"], observed=True)["seed"].nunique()))
