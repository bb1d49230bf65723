"""How retrieval is evaluated: options that import nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from lossscope.core.choices import OUTPUT, Choice, require_choices
from lossscope.errors import OptionError


def _read_cutoffs(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and len(part) < 10 and int(part) for part in parts):
        raise OptionError(f"--k must be numbers of at least 1, such as 10,100; got {text!r}")
    return tuple(sorted({int(part) for part in parts}))


def _read_top(text: str) -> int | None:
    if text == "all":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise OptionError(f"--run-top must be a number of at least 1, or all; got {text!r}")
    return int(text)


@dataclass(frozen=True)
class RetrievalOptions:
    """How sources are ranked, and what is written. Raises OptionError for options that do not go together."""

    folds: Annotated[int, Choice(None, "Cut the images into N equal folds and average (COCO 1K: 5).", low=1)] = 1
    # k of R@k, recall@k, nDCG@k and MRR@k; None: those of the papers
    k: Annotated[
        tuple[int, ...] | None,
        Choice(
            None,
            "Cut-offs of R@k, recall@k, nDCG@k and MRR@k; default 1,5,10. Images and captions get the "
            "last three, MAP@R and R-precision only with --k.",
            shown=False,
            flags="--k",
            read=_read_cutoffs,
        ),
    ] = None
    judgements: Annotated[
        tuple[Path, ...],
        Choice(
            None,
            "File of pairs that people judged; their positives count in separate rows. Flickr8k's "
            "experts or CrowdFlower, ECCV Caption, CxC, or a CSV file with columns image, caption and "
            "optionally positive; repeat for several.",
        ),
    ] = ()
    judged_only: Annotated[
        bool,
        Choice(None, "Rank the judged queries alone, as ECCV Caption does.", flags="--judged-only"),
    ] = False
    ensemble: Annotated[bool, Choice(None, "Rank by the mean of the similarity matrices.", flags="--ensemble")] = False
    run_files: Annotated[
        Path | None, Choice(OUTPUT, "Folder for TREC run files and qrels, to check the numbers elsewhere.")
    ] = None
    run_top: Annotated[
        int | None, Choice(OUTPUT, "Candidates per query in run files, or `all`.", shown="100", read=_read_top)
    ] = 100

    def __post_init__(self) -> None:
        require_choices(self)
        if self.run_files is not None and (self.ensemble or self.folds > 1):
            raise OptionError(
                "--run-files writes the ranking of a whole split by one model; leave out --ensemble and --folds"
            )
        if self.judged_only and not self.judgements:
            raise OptionError("--judged-only needs --judgements FILE, which lists the judged pairs")
        if self.judgements and self.folds > 1:
            raise OptionError("--judgements need a whole split, whose parts they connect; leave out --folds")
        if self.judgements and self.run_files is not None:
            raise OptionError("--run-files writes the data's own positives; leave out --judgements, or --run-files")
