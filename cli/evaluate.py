"""`lossscope eval`: how well does a model retrieve?"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ._app import command
from ._options import (
    OUTPUT,
    AcceptOptions,
    CaptionImage,
    DataSpec,
    Debug,
    Device,
    EncoderOptions,
    Format,
    NoCache,
    Quiet,
    SidesOption,
    Sources,
    SplitName,
    TrustCode,
    VocabularyFile,
    usage,
)
from ._output import notice, print_results
from ._progress import progress
from ._sources import load_source

if TYPE_CHECKING:
    import pandas as pd

    from lossscope.core.embedded import SplitEmbeddings
    from lossscope.core.types import Progress
    from lossscope.retrieval.judged import JudgedPairs


_TIES = {
    "ties": "have ties at their rank: the positive counts first among equals, where code that sorts ranks them by "
    "their place",
    "ties_any": "have a positive that ties with another candidate: recall@k, nDCG@k, MRR@k, MAP@R and R-precision take "
    "equal candidates in the order of their rows",
}


@command("eval", imports="lossscope.retrieval.evaluate")
def evaluate(
    sources: Sources,
    data: DataSpec = None,
    split: SplitName = "test",
    folds: Annotated[int, typer.Option(help="Cut the images into N equal folds and average (COCO 1K: 5).", min=1)] = 1,
    k: Annotated[
        str | None,
        typer.Option(
            "--k",
            help="Cut-offs of R@k, recall@k, nDCG@k and MRR@k. Of images and captions the last three, MAP@R and "
            "R-precision are computed where it is given; of other sides k is 1,5,10 otherwise.",
            show_default=False,
        ),
    ] = None,
    judgements: Annotated[
        list[Path] | None,
        typer.Option(
            help="File of pairs that people judged: their positives count beside the data's own, in rows of their own. "
            "Flickr8k's experts or CrowdFlower, ECCV Caption, CxC, or a CSV file with the columns image, caption and, "
            "perhaps, positive. May be repeated.",
        ),
    ] = None,
    judged_only: Annotated[
        bool, typer.Option("--judged-only", help="Queries are those that were judged, as in ECCV Caption's measures.")
    ] = False,
    ensemble: Annotated[bool, typer.Option("--ensemble", help="Rank by the mean of the similarity matrices.")] = False,
    device: Device = "auto",
    format: Format = "table",
    out: Annotated[
        Path | None, typer.Option(help="File for the result instead of stdout.", rich_help_panel=OUTPUT)
    ] = None,
    run_files: Annotated[
        Path | None,
        typer.Option(
            help="Folder for TREC run files and qrels, to check the numbers elsewhere.", rich_help_panel=OUTPUT
        ),
    ] = None,
    run_top: Annotated[
        str, typer.Option(help="Candidates of each query in them, or `all`.", rich_help_panel=OUTPUT)
    ] = "100",
    no_cache: NoCache = False,
    vocabulary: VocabularyFile = None,
    caption_image: CaptionImage = None,
    sides: SidesOption = None,
    encoder_option: EncoderOptions = None,
    accept_option: AcceptOptions = None,
    trust_code: TrustCode = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Recall at 1, 5, 10, median and mean rank, mAP@5 and rsum, both directions; nDCG, MRR, MAP@R of other sides.

    **Examples**

    `lossscope eval ckpt.pt`

    `lossscope eval saf.pt sgr.pt --ensemble --format latex`

    `lossscope eval coco_5k.npz --folds 5`

    `lossscope eval ckpt.pt --k 10,100 --format json`

    `lossscope eval ckpt.pt --run-files trec --run-top all`

    `lossscope eval ckpt.pt --split test --judgements ExpertAnnotations.txt`

    Ranks count strictly higher candidates; `ties` is the number of queries that have a non-relevant candidate exactly
    as high as the best relevant one. Of sides other than images and captions, queries are the items that have a
    positive, and the candidates all items of the other side; docs/concepts/retrieval.md defines each number, and what
    `--judgements` changes.
    """
    from lossscope.io.frames import join
    from lossscope.retrieval.evaluate import evaluate as evaluate_sources
    from lossscope.retrieval.judged import evaluate_judged
    from lossscope.tables import judged_retrieval, retrieval

    if run_files is not None and (ensemble or folds > 1):
        raise usage("--run-files writes the ranking of a whole split by one model; leave out --ensemble and --folds")
    _require_plain_split(judgements, judged_only, folds, run_files)
    top, cutoffs = _parse_top(run_top), _parse_cutoffs(k)
    request: dict[str, Any] = {
        "data": data, "split": split, "cache": not no_cache, "trust_code": trust_code, "vocabulary": vocabulary,
        "caption_image": caption_image, "sides": sides, "encoder": tuple(encoder_option or ()),
        "accepted_options": tuple(accept_option or ()),
    }  # fmt: skip
    with progress(quiet) as report:
        loaded = [load_source(source, report, quiet, device, **request) for source in sources]
        groups = [loaded] if ensemble else [[one] for one in loaded]
        if judgements:
            judge = _read_judgements(judgements, quiet)
            rows = join(evaluate_judged(group, judge(group[0]), None, cutoffs, judged_only) for group in groups)
        else:
            rows = join(evaluate_sources(group, folds, cutoffs=cutoffs) for group in groups)
        for place, one in enumerate(loaded if run_files is not None else ()):
            folder = Path(str(run_files))
            own = folder / f"{place:02d}-{Path(one.name).stem}" if len(loaded) > 1 else folder
            _write_run_files(one, own, top, report, quiet)
    _report_ties(rows, quiet)
    arguments = {
        "name": "eval",
        "sources": [str(source) for source in sources],
        "split": split,
        "folds": folds,
        "ensemble": ensemble,
    } | ({} if cutoffs is None else {"k": list(cutoffs)})
    if judgements:
        arguments |= {"judgements": [str(file) for file in judgements], "judged_only": judged_only}
    table = judged_retrieval if judgements else retrieval
    print_results(rows, lambda: [table.build(rows)], arguments, format, out)


def _require_plain_split(judgements: list[Path] | None, judged_only: bool, folds: int, run_files: Path | None) -> None:
    """Raise a usage error for options that --judgements does not go with."""
    if judged_only and not judgements:
        raise usage("--judged-only needs --judgements FILE, which says what was judged")
    if judgements and folds > 1:
        raise usage("--judgements are of a whole split, whose parts they connect; leave out --folds")
    if judgements and run_files is not None:
        raise usage("--run-files writes the data's own positives; leave out --judgements, or --run-files")


def _read_judgements(files: list[Path], quiet: bool) -> Callable[[SplitEmbeddings], JudgedPairs]:
    """Return what matches the judgements of files to a split; notices are shown once for each set of notices."""
    from lossscope.datasets.judgements.any_format import read_judgements
    from lossscope.retrieval.judged import match_judgements

    said = set[str]()
    read = cache(read_judgements)  # of several sources of the same sides once

    def match(embedded: SplitEmbeddings) -> JudgedPairs:
        judged = match_judgements(embedded, [read(file, embedded.sides) for file in files])
        for text in judged.summary:
            if text not in said:
                notice(f"Note: {text}.", quiet)
            said.add(text)
        return judged

    return match


def _parse_top(text: str) -> int | None:
    if text == "all":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise usage(f"--run-top must be a number of at least 1, or all; got {text!r}")
    return int(text)


def _parse_cutoffs(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and len(part) < 10 and int(part) for part in parts):
        raise usage(f"--k must be numbers of at least 1, such as 10,100; got {text!r}")
    return tuple(sorted({int(part) for part in parts}))


def _write_run_files(
    embedded: SplitEmbeddings, folder: Path, top: int | None, report: Progress | None, quiet: bool
) -> None:
    from lossscope.retrieval.trec import write_run_files

    written = write_run_files(embedded, folder, top, Path(embedded.name).stem, report)
    names = [path.name for kind in (".run", ".qrels") for path in written if path.suffix == kind]
    notice(f"Wrote {folder}/{', '.join(names[:-1])} and {names[-1]}.", quiet)


def _report_ties(rows: pd.DataFrame, quiet: bool) -> None:
    tied = rows[rows["statistic"].isin(_TIES) & (rows["mean"] > 0)]
    for row in tied.to_dict("records"):
        queries = f"{row['mean']:g} {row['direction']} queries of {row['source']}"
        queries += " with judgements" if row["probe"] != "recall" else ""
        notice(f"Note: {queries} {_TIES[row['statistic']]}.", quiet)
