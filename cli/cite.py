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
    frames: Annotated[tuple[Path, ...], Choice(None, "Frame folders that --out wrote.", argument=True)],
    statistic: Annotated[
        tuple[str, ...], Choice(None, "Statistic to cite, such as C_neg; repeat for several.", shown="all")
    ] = (),
    direction: Annotated[
        tuple[str, ...], Choice(None, "Direction to cite, such as i2t; repeat for several.", shown="all")
    ] = (),
    format: Annotated[
        Literal["text", "bibtex", "json", "latex"],
        Choice(
            None, "Format: sentences and papers, BibTeX entries, a JSON document, or LaTeX sentences with citations."
        ),
    ] = "text",
    out: Annotated[Path | None, Choice(None, "File to write instead of stdout.")] = None,
) -> None:
    """Cite a number: print its measurement in a sentence, and BibTeX.

    **Examples**

    `lossscope cocos checkpoints/tiny.pt --objective ntxent --out frame`

    `lossscope cite frame`

    `lossscope cite frame --statistic C_neg --direction i2t --format latex`

    `lossscope cite frame --format bibtex > papers.bib`

    A sentence states the statistic, its interval and the method of that, convention, eps, and the objective with all
    its parameters. It also states the data with their fingerprint, batches, masks, the seed, and the version of
    lossscope. The command reads all parts of the frame, and refuses a damaged or changed part.
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
