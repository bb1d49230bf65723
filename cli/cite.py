"""`lossscope cite`: what exactly was measured, and whose measure is it?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

from lossscope.core.choices import Choice

from ._app import command
from ._output import fold, print_text


@command()
def cite(
    frames: Annotated[tuple[Path, ...], Choice(None, "Frame folders, as --out wrote them.", argument=True)],
    statistic: Annotated[
        tuple[str, ...], Choice(None, "Of these alone, as C_neg; repeat for several.", shown="all")
    ] = (),
    direction: Annotated[
        tuple[str, ...], Choice(None, "Of these alone, as i2t; repeat for several.", shown="all")
    ] = (),
    format: Annotated[
        Literal["text", "bibtex", "json", "latex"],
        Choice(None, "Sentences and papers, entries of papers, one document, or sentences that cite them."),
    ] = "text",
    out: Annotated[Path | None, Choice(None, "File to write instead of stdout.")] = None,
) -> None:
    """Cite a number: a sentence on how it was measured, and BibTeX.

    **Examples**

    `lossscope cocos checkpoints/tiny.pt --objective ntxent --out frame`

    `lossscope cite frame`

    `lossscope cite frame --statistic C_neg --direction i2t --format latex`

    `lossscope cite frame --format bibtex > papers.bib`

    A sentence has the statistic, its interval and how that was made, convention, eps, the objective with all its
    parameters, the data and their fingerprint, batches, masks, the seed, and the version of lossscope. All parts of
    the frame are read; one that is damaged or was changed is refused.
    """
    from lossscope.io.frame_summary import read_measurement
    from lossscope.tables.citing import documents
    from lossscope.tables.citing.citation import citations

    measured = [read_measurement(frame) for frame in frames]
    chosen = list(statistic) or None, list(direction) or None
    cited = [citation for measurement in measured for citation in citations(measurement, *chosen)]
    papers = documents.papers_to_cite(cited)
    if format == "json":
        text = json.dumps(documents.document(cited, papers), indent=1)
    elif format == "bibtex":
        text = documents.bibtex(papers)
    elif format == "latex":
        text = documents.latex(cited, papers)
    else:
        text = "\n\n".join(fold(paragraph, indent=0) for paragraph in documents.paragraphs(cited, papers))
    print_text(text, out)
