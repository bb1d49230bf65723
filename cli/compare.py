"""`lossscope compare`: which differences between systems are more than chance?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lossscope.stats.metric_names import METRICS, extra_cutoffs, is_metric, is_statistic

from ._app import command
from ._options import (
    SPLITS,
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
    TrustCode,
    VocabularyFile,
    complete_words,
    require_choice,
    usage,
)
from ._output import FORMATS, notice, print_results
from ._progress import progress
from ._sources import load_source

if TYPE_CHECKING:
    import pandas as pd

    from lossscope.core.types import Progress

SCHEMA = "lossscope.comparison/3"


def _complete_metrics(incomplete: str) -> list[str]:
    return [name for name in (*METRICS, "all") if name.startswith(incomplete)]


@command()
def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(
            help="Run folders, checkpoints or other sources; runs that differ in their seed alone are one system.",
            show_default=False,
        ),
    ],
    metric: Annotated[
        list[str] | None,
        typer.Option(
            help="rsum, i2t_R@1, t2i_MRR, ..., of other sides q2d_nDCG@10, all_MAP@R, ..., or all; repeat for several. "
            "Unless given: rsum, of other sides nDCG@10 of the first direction.",
            autocompletion=_complete_metrics,
            show_default=False,
        ),
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(help="System, or one of its runs, that all others are compared with.")
    ] = None,
    all_pairs: Annotated[bool, typer.Option("--all-pairs", help="Every system with every other.")] = False,
    data: DataSpec = None,
    split: Annotated[
        str, typer.Option(help="Split of the checkpoints' data.", autocompletion=complete_words(*SPLITS))
    ] = "test",
    resamples: Annotated[int, typer.Option(help="Of permutations and of the bootstrap.", min=99, max=1_000_000)] = 9999,
    level: Annotated[float, typer.Option(help="Of the confidence intervals; the MDD is at level 1 - this.")] = 0.95,
    seed: Annotated[int, typer.Option(help="Seed of permutations and of the bootstrap.", min=0)] = 0,
    device: Device = "auto",
    format: Format = "table",
    out: Annotated[Path | None, typer.Option(help="File for the result instead of stdout.")] = None,
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
    """Differences between systems, with tests paired over images or queries and over seeds, corrected by Holm.

    **Examples**

    `lossscope compare runs/triplet-seed* runs/triplet-sh-seed*`

    `lossscope compare runs/* --metric rsum --metric t2i_R@1 --baseline triplet --format latex --out table.tex`

    `lossscope compare saf.npz sgr.npz --metric all --all-pairs --format csv`

    Without --baseline every system is compared with the one that has the best mean. A system is named after its
    objective and whatever else differs between the recipes; a source that does not say how it was trained, after its
    file. Where p is above 0.05 the table has the MDD, the smallest difference that the test would find; P(A > B) is how
    often a system beats the baseline with a new seed. What is tested, and what three seeds can show: docs/compare.md.
    """
    from lossscope.stats.compare import Resampling
    from lossscope.stats.compare import compare as compare_systems
    from lossscope.stats.per_image import metrics_of
    from lossscope.tables import comparison

    require_choice(format, FORMATS, "--format")
    if baseline is not None and all_pairs:
        raise usage("--baseline and --all-pairs exclude each other; give one of them")
    for name in metric or ():
        if not is_metric(name) and not is_statistic(name):
            require_choice(name, (*METRICS, "all"), "--metric")
    resampling = Resampling(resamples, seed, level)
    request: dict[str, Any] = {
        "data": data, "split": split, "cache": not no_cache, "trust_code": trust_code, "vocabulary": vocabulary,
        "caption_image": caption_image, "sides": sides, "encoder": tuple(encoder_option or ()),
        "accepted_options": tuple(accept_option or ()),
    }  # fmt: skip
    with progress(quiet) as report:
        queries = _queries(runs, report, quiet, device, request, extra_cutoffs(metric or ()))
    known = metrics_of(queries)
    for name in metric or ():
        if is_statistic(name):  # without its direction, whose name the runs say
            require_choice(name, (*known, "all"), "--metric")
    metrics = known if "all" in (metric or ()) else tuple(metric or known[:1])
    rows = compare_systems(queries, metrics, _system(baseline, queries), all_pairs, resampling)
    for left_out in dict.fromkeys(str(row["left_out"]) for _, row in rows.iterrows() if row["left_out"]):
        notice(f"Note: left out, because the other system has no such seed: {left_out}.", quiet)
    arguments = {
        "name": "compare", "runs": [str(run) for run in runs], "metrics": list(metrics), "baseline": baseline,
        "all_pairs": all_pairs, "split": split, "resamples": resamples, "level": level, "seed": seed,
    }  # fmt: skip
    print_results(rows, lambda: [comparison.build(rows)], arguments, format, out, SCHEMA)


def _queries(
    runs: Iterable[Path],
    report: Progress | None,
    quiet: bool,
    device: str,
    request: dict[str, Any],
    cutoffs: Sequence[int] | None,
) -> pd.DataFrame:
    """Every query of every run, beside what the run is. One model at a time is kept."""
    import pandas as pd

    from lossscope.retrieval.per_query import per_query
    from lossscope.stats.naming import TrainedModel, name_systems
    from lossscope.training.recipe_files import printed_choices

    models: list[TrainedModel] = []
    parts: list[pd.DataFrame] = []
    for run in runs:
        embedded = load_source(run, report, quiet, device, **request)
        models.append(TrainedModel(embedded.name, embedded.seed, printed_choices(embedded.recipe)))
        parts.append(per_query(embedded, report, cutoffs))
    systems = name_systems(models, request["data"])
    return pd.concat([rows.assign(**own) for rows, own in zip(parts, systems, strict=True)], ignore_index=True)


def _system(baseline: str | None, queries: pd.DataFrame) -> str | None:
    """The system that is meant: by its name, with - or _, or by one of its runs."""
    if baseline is None:
        return None
    for run, label in queries[["run", "objective_label"]].drop_duplicates().itertuples(index=False):
        if baseline.rstrip("/") == run or baseline.replace("-", "_") == label.replace("-", "_"):
            return str(label)
    return baseline
