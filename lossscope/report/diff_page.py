"""A page of the differences between two sides: a picture of the intervals, tables, the queries that changed most."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from lossscope.plots import differences, style
from lossscope.tables import diff

from .page import write_page
from .sections import Item, Picture, Section


def write_diff_page(
    out: Path,
    rows: pd.DataFrame,
    queries: pd.DataFrame,
    negatives: pd.DataFrame,
    left_out: tuple[str, ...],
    provenance: Mapping[str, str],
) -> Path:
    """Write the page; return its path.

    Args:
        out: folder to write.
        rows: of `lossscope diff`.
        queries: that changed most; may be empty.
        negatives: their heaviest negatives on both sides; may be empty.
        left_out: statistics without a difference, and why.
        provenance: versions, seeds, the command.
    """
    items: list[Item] = []
    if rows["low"].notna().any():
        with style.screen():
            figure = differences.draw_many(rows)
        items.append(
            Picture("differences", "B − A of each statistic.", differences.alt(rows), figure, "differences", rows)
        )
    sections = [Section("What differs", _text(rows, left_out), (*items, *diff.build(rows)))]
    if len(queries):
        text = (
            "The ids are those of the source. A query that stands in several batches has the mean of its differences."
        )
        heaviest = (diff.build_negatives(negatives),) if len(negatives) else ()
        sections.append(Section("Which queries changed most", text, (diff.build_queries(queries), *heaviest)))
    row = rows.iloc[0]
    title = f"{row['b_source']} against {row['source']}"
    lead = f"A is {row['source']}, B is {row['b_source']}, on the same batches."
    return write_page(out, title, lead, sections, provenance)


def _text(rows: pd.DataFrame, left_out: tuple[str, ...]) -> str:
    known = int(rows["low"].notna().sum())
    marked = sum(diff.excludes_zero(row) for row in rows.to_dict("records"))
    equal = int((rows["method"] == "equal").sum())
    parts = [f"{marked} of {known} intervals exclude 0."]
    if equal:
        parts.append(f"{equal} of {len(rows)} statistics are equal in every batch and of every query.")
    return " ".join(parts) + "".join(f"\n\nLeft out: {text}." for text in left_out)
