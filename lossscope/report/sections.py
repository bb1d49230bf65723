"""What a page is made of: sections of pictures, tables and charts, and the answer that stands before them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pandas as pd

from lossscope.errors import InputError
from lossscope.tables.base import Table

from .bars import BarChart
from .interactive import HeatmapChart, SliderChart

_T = TypeVar("_T")


@dataclass(frozen=True)
class Picture:
    """A figure with its texts."""

    name: str  # of its files
    caption: str
    alt: str  # description for readers who cannot see it
    figure: object  # of matplotlib
    plot: str = ""  # file of lossscope/plots that draws its numbers
    numbers: pd.DataFrame | None = None  # what `plot` draws; None: not of the runs, so that a command makes them


Item = Picture | Table | SliderChart | HeatmapChart | BarChart


@dataclass(frozen=True)
class Section:
    """A chapter: a heading, text, and pictures, tables and charts.

    The page shows charts and pictures first and folds tables. Charts are on the page only; a picture or a table beside
    each shows the same in print and without scripts.
    """

    title: str
    text: str  # paragraphs separated by empty lines
    items: tuple[Item, ...] = ()
    more: tuple[Item, ...] = ()  # folded away on the page; in LaTeX and in print they follow the items
    look: str = ""  # why to look here, one sentence; empty: not among what to look at next
    other_data: bool = False  # whether the published numbers of its tables are of other data than ours

    @property
    def key(self) -> str:
        """The name of its place on the page: `Could it be chance?` -> `could-it-be-chance`."""
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")

    @property
    def all_items(self) -> tuple[Item, ...]:
        """The items shown at once, and those folded away."""
        return (*self.items, *self.more)

    @property
    def seen(self) -> list[Item]:
        """Charts and pictures that are seen at once."""
        return [item for item in self.items if not isinstance(item, Table)]

    @property
    def folded(self) -> list[Item]:
        """Charts and pictures that are folded away."""
        return [item for item in self.more if not isinstance(item, Table)]

    @property
    def tables(self) -> list[Table]:
        """Its tables, in order."""
        return [item for item in self.all_items if isinstance(item, Table)]

    @property
    def paragraphs(self) -> list[str]:
        """The paragraphs of the text."""
        return [part.strip() for part in re.split(r"\n\s*\n", self.text) if part.strip()]


@dataclass(frozen=True)
class Finding:
    """One sentence or two on what the numbers say."""

    text: str
    chapter: str = ""  # title of the section that shows it
    warning: bool = False  # a reason to doubt the numbers


@dataclass(frozen=True)
class Answer:
    """What stands before the chapters: findings, reasons to doubt them, and the main figure."""

    findings: tuple[Finding, ...] = ()
    figure: str = ""  # name of the picture or bar chart to show; empty: none
    notes: tuple[str, ...] = ()  # what an expression of the findings means
    doctor: tuple[Finding, ...] = ()  # which runs are ill, of what: stands at the very top
    headline: str = ""  # the answer in a single sentence
    planted: tuple[Finding, ...] = ()  # what runs show that fail on purpose


def items_of(sections: Sequence[Section], kind: type[_T]) -> Iterator[_T]:
    """Yield the items of one type."""
    return (item for section in sections for item in section.all_items if isinstance(item, kind))


def require_names(sections: Sequence[Section], numbers: Iterable[str] = ()) -> None:
    """Raise InputError unless the names of all items differ and can be those of files, and all titles differ.

    Args:
        sections: of a page.
        numbers: names of files of numbers, which no item may have.
    """
    names = [item.name for section in sections for item in section.all_items]
    for name in names:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name) or name == "main":
            raise InputError(
                f"name of a picture or table must be letters, digits, - and _, and not main; got {name!r}. Rename it"
            )
    _require_distinct("names in a report", [*names, *numbers])
    _require_distinct("titles of chapters", [section.key for section in sections])


def _require_distinct(what: str, names: Sequence[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"{what} must differ; got {', '.join(twice)} twice. Rename one of them")
