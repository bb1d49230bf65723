"""What a chapter of the report is: one file with ORDER and `build(material)`, which gives its sections."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from ..page import Item, Picture, Section
from ..results import Results

Build = Callable[["ReportData"], Sequence[Section]]


@dataclass(frozen=True)
class ReportData:
    """What chapters draw from. comparisons: of `compare`, empty where there is nothing to compare; tests: its
    `significance`. fields: weight fields of what was trained (columns of `weight_field`), keyed by label.
    """

    results: Results
    comparisons: pd.DataFrame = field(default_factory=pd.DataFrame)
    tests: pd.DataFrame | None = None
    fields: pd.DataFrame = field(default_factory=pd.DataFrame)

    @property
    def eps(self) -> float:
        """The threshold that most counts were made with; 0.01 where there are none."""
        known = self.results.rows["eps"].dropna()
        return float(known.mode().iloc[0]) if len(known) else 0.01

    def corrected(self, probe: str) -> pd.DataFrame:
        """Summary rows of a probe, counted per query."""
        rows = self.results.rows[self.results.rows["probe"] == probe]
        found: pd.DataFrame = rows[rows["convention"].isna() | (rows["convention"] == "corrected")]
        return found


def build_sections(material: ReportData) -> list[Section]:
    """The sections of every chapter, by ORDER."""
    return [section for build in _builders() for section in build(material)]


def _builders() -> Iterator[Build]:
    home = str(Path(__file__).parent)
    names = [one.name for one in pkgutil.iter_modules([home]) if one.name != "base" and not one.name.startswith("_")]
    found: list[Any] = [importlib.import_module(f"{__package__}.{name}") for name in names]
    for chapter in sorted(found, key=lambda one: (one.ORDER, one.__name__)):
        yield chapter.build


def split_of(rows: pd.DataFrame) -> str:
    """`test`; `train and val` where rows are of several."""
    return " and ".join(map(str, rows["split"].dropna().unique())) or "unknown"


def folded(items: Sequence[Item], shown: int = 2) -> tuple[tuple[Item, ...], tuple[Item, ...]]:
    """All but pictures, and the first pictures; the other pictures, to be folded away."""
    pictures = [item for item in items if isinstance(item, Picture)]
    first = [item for item in items if not isinstance(item, Picture) or item in pictures[:shown]]
    return tuple(first), tuple(pictures[shown:])


def panel(rows: pd.DataFrame) -> pd.Series[str]:
    """`VSE++, scenes`: the model, and the data where there are several."""
    encoder, data = rows["encoder"].astype(str), rows["data"].astype(str)
    if data.nunique() == 1:
        return encoder
    return data if encoder.nunique() == 1 else encoder + ", " + data
