"""`lossscope eval`: how well does a model retrieve?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from lossscope.core.request import Request
from lossscope.errors import InputError
from lossscope.retrieval.options import RetrievalOptions

from ._app import Work, command
from ._options import File, Format, Sources
from ._output import notice, print_results
from ._progress import progress
from ._sources import OF_TEST, join_splits, load_source

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


@command(
    "eval",
    work=Work(imports="lossscope.retrieval.evaluate"),
    first=("data", "split", "folds", "k", "ensemble", "judgements", "format", "out"),
)
def evaluate(
    sources: Sources,
    request: Request = OF_TEST,
    options: RetrievalOptions = RetrievalOptions(),  # noqa: B008 - never changed
    format: Format = "table",
    out: File = None,
) -> None:
    """How well does it retrieve? Recall, ranks, rsum, mAP, nDCG, MRR.

    **Examples**

    `lossscope eval ckpt.pt`

    `lossscope eval saf.pt sgr.pt --ensemble --format latex`

    `lossscope eval coco_5k.npz --folds 5`

    `lossscope eval ckpt.pt --k 10,100 --format json`

    `lossscope eval ckpt.pt --run-files trec --run-top all`

    `lossscope eval ckpt.pt --split test --judgements ExpertAnnotations.txt`

    `lossscope eval bm25.trec --judgements qrels.txt`

    A rank counts strictly higher candidates. `ties` counts the queries with a non-relevant candidate exactly as high
    as the best relevant one. Outside of images and captions, queries are the items with a positive, and candidates
    are all items of the other side. docs/concepts/retrieval.md defines each number, and what `--judgements` changes.
    """
    from lossscope.io.frames import join
    from lossscope.io.trec_files import is_run
    from lossscope.retrieval.evaluate import evaluate as evaluate_sources
    from lossscope.retrieval.judged import evaluate_judged
    from lossscope.retrieval.trec import require_run_ids
    from lossscope.tables import judged_retrieval, retrieval

    if any(is_run(source) for source in sources):
        rows = _evaluate_runs(sources, options)
        command: dict[str, object] = {"name": "eval", "sources": [str(source) for source in sources]}
        command |= {"judgements": [str(file) for file in options.judgements]}
        print_results(rows, lambda: [retrieval.build(rows)], command, format, out)
        return
    with progress() as report:
        loaded = [load_source(source, request, report) for source in sources]
        for embedded in loaded if options.run_files is not None else ():
            require_run_ids(embedded)
        groups = [loaded] if options.ensemble else [[embedded] for embedded in loaded]
        if options.judgements:
            judge = _read_judgements(options.judgements)
            judged = ((group, judge(group[0])) for group in groups)
            rows = join(evaluate_judged(group, pairs, None, options.k, options.judged_only) for group, pairs in judged)
        else:
            rows = join(evaluate_sources(group, options.folds, cutoffs=options.k) for group in groups)
        if options.run_files is not None:
            _write_run_files(loaded, options.run_files, options.run_top, report)
    _report_ties(rows)
    command = {
        "name": "eval",
        "sources": [str(source) for source in sources],
        "split": join_splits(embedded.split for embedded in loaded),
        "folds": options.folds,
        "ensemble": options.ensemble,
    } | ({} if options.k is None else {"k": list(options.k)})
    if options.judgements:
        command |= {"judgements": [str(file) for file in options.judgements], "judged_only": options.judged_only}
    table = judged_retrieval if options.judgements else retrieval
    print_results(rows, lambda: [table.build(rows)], command, format, out)


def _evaluate_runs(sources: Sequence[Path], options: RetrievalOptions) -> pd.DataFrame:
    """Return summary rows of TREC runs. Raises InputError where another source is among them, or no qrels are given."""
    from lossscope.io.frames import join
    from lossscope.io.trec_files import is_run
    from lossscope.retrieval.trec_eval import judge_run, summarise_run

    other = next((source for source in sources if not is_run(source)), None)
    if other is not None:
        raise InputError(f"sources must all be TREC runs, or none; got {other} beside them. Evaluate it apart")
    if len(options.judgements) != 1:
        raise InputError(
            f"{sources[0]} is a TREC run, and needs the judgements of its queries, one file of `query 0 document "
            f"grade`: --judgements QRELS; got {len(options.judgements)} files"
        )
    unused = {"--ensemble": options.ensemble, "--folds": options.folds > 1, "--judged-only": options.judged_only}
    typed = [name for name, is_given in unused.items() if is_given]
    if typed:
        raise InputError(f"{', '.join(typed)} must be left out for TREC runs, which have no similarities")
    results = [(source, judge_run(source, options.judgements[0], options.k)) for source in sources]
    for text in dict.fromkeys(text for _, result in results for text in result.notices):
        notice(f"Note: {text}.")
    return join(summarise_run(source, result) for source, result in results)


def _read_judgements(files: Sequence[Path]) -> Callable[[SplitEmbeddings], JudgedPairs]:
    """Return what matches the judgements of files to a split; notices are shown once for each set of notices."""
    from lossscope.datasets.judgements.any_format import read_judgements
    from lossscope.retrieval.judged import match_judgements

    printed = set[str]()
    read = cache(read_judgements)  # of several sources of the same sides once

    def match(embedded: SplitEmbeddings) -> JudgedPairs:
        judged = match_judgements(embedded, [read(file, embedded.sides) for file in files])
        for text in judged.summary:
            if text not in printed:
                notice(f"Note: {text}.")
            printed.add(text)
        return judged

    return match


def _write_run_files(loaded: Sequence[SplitEmbeddings], folder: Path, top: int | None, report: Progress | None) -> None:
    """Write run files and qrels of each source, of several in folders of their own."""
    from lossscope.core.item_ids import look_alikes, named_ids
    from lossscope.retrieval.trec import write_run_files

    for number, embedded in enumerate(loaded):
        name = Path(embedded.name).stem
        home = folder / f"{number:02d}-{name}" if len(loaded) > 1 else folder
        written = write_run_files(embedded, home, top, name, report)
        for what, ids in named_ids(embedded.sides, embedded.image_ids, embedded.caption_ids):
            for text in look_alikes(what, ids, embedded.name):
                notice(f"Note: {text}.")
        names = [path.name for kind in (".run", ".qrels") for path in written if path.suffix == kind]
        notice(f"Wrote {home}/{', '.join(names[:-1])} and {names[-1]}.")


def _report_ties(rows: pd.DataFrame) -> None:
    tied = rows[rows["statistic"].isin(_TIES) & (rows["mean"] > 0)]
    for row in tied.to_dict("records"):
        queries = f"{row['mean']:g} {row['direction']} queries of {row['source']}"
        queries += " with judgements" if row["probe"] != "recall" else ""
        notice(f"Note: {queries} {_TIES[row['statistic']]}.")
