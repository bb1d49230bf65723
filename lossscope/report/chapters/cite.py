"""Which papers are the measures and losses of the page from?"""

from __future__ import annotations

from collections.abc import Sequence

from lossscope.tables.base import Table
from lossscope.tables.cells import Cell
from lossscope.tables.citing.paper import Paper
from lossscope.tables.citing.sources import papers_of_measure, papers_of_objective

from ..sections import Section
from .base import ReportData

ORDER = 110
TITLE = "How to cite"
_TEXT = (
    "The papers that define the measures and the losses of this page; no line where no paper does. What was trained "
    "and counted, with fingerprints, seeds and versions, is in the chapter before and at the end of the page. "
    "`lossscope cite FRAME` says of any number of a frame what was measured, in one sentence, and writes BibTeX."
)


def build(data: ReportData) -> Sequence[Section]:
    """Return a table of papers, and what of the page is from each; nothing where no paper defines anything."""
    rows, of_paper = data.results.rows, dict[Paper, dict[str, None]]()
    measures = rows[["probe", "statistic"]].dropna().drop_duplicates().itertuples(index=False)
    for probe, statistic in measures:
        for paper in papers_of_measure(str(probe), str(statistic)):
            of_paper.setdefault(paper, {})[f"{probe} {statistic}"] = None
    for spec in rows["objective"].dropna().unique():
        for paper in papers_of_objective(str(spec)):
            of_paper.setdefault(paper, {})[str(spec).partition(":")[0]] = None
    if not of_paper:
        return []
    lines = tuple((Cell(text=", ".join(names)), Cell(text=paper.reference())) for paper, names in of_paper.items())
    return [Section(TITLE, _TEXT, (Table("papers", "Papers.", (("", "of"), ("", "paper")), lines),))]
