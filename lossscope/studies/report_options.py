"""The options of a report; they import nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from lossscope.core.choices import SPLITS, Choice


def _read_columns(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


@dataclass(frozen=True)
class ReportOptions:
    """What a report shows, and what it computes of run folders."""

    title: Annotated[str | None, Choice(None, "Title of the page.", shown="the study's name")] = None
    # with `test` None: the report uses existing evaluations
    split: Annotated[str | None, Choice(None, "Split to count in run folders.", shown="train", words=SPLITS)] = None
    test: Annotated[str | None, Choice(None, "Split to rank in run folders.", shown="test", words=SPLITS)] = None
    resamples: Annotated[int, Choice(None, "Number of resamples for tests and intervals.", low=99, high=1_000_000)] = (
        9999
    )
    # see `relabel`
    labels: Annotated[
        tuple[str, ...],
        Choice(
            None,
            "Name of a system in tables and pictures: RUN=NAME, or NAME in order; repeat for several.",
            flags="--label",
        ),
    ] = ()
    # of tables, see `tables.choice`; none: all
    columns: Annotated[
        tuple[str, ...],
        Choice(None, "Columns of the tables, such as `R@1,rsum`; CSV files keep all.", shown="all", read=_read_columns),
    ] = ()
    published: Annotated[
        bool, Choice(None, "Show published numbers beside ours.", flags="--published/--no-published")
    ] = True
    literature: Annotated[
        bool, Choice(None, "Also show the rows that the paper prints and no run measures.", flags="--literature")
    ] = False
