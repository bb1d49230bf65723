"""`lossscope compare`: which of several models is better, and could it be chance?"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import _output, _sources
from .app import (
    CaptionImage,
    DataSpec,
    Debug,
    Device,
    EncoderOptions,
    Format,
    Quiet,
    TrustCode,
    VocabularyFile,
    chosen,
    command,
    usage,
)

if TYPE_CHECKING:
    import pandas as pd

METRICS = ("rsum", *(f"{side}_{name}" for side in ("i2t", "t2i") for name in ("R@1", "R@5", "R@10", "MRR", "mAP@5")))
SCHEMA = "lossscope.comparison/2"


def _metrics(incomplete: str) -> list[str]:
    return [name for name in METRICS if name.startswith(incomplete)]


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
        typer.Option(help="rsum (default), i2t_R@1, t2i_MRR, ..., or all; repeat.", autocompletion=_metrics),
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(help="System, or one of its runs, that all others are compared with.")
    ] = None,
    all_pairs: Annotated[bool, typer.Option("--all-pairs", help="Every system with every other.")] = False,
    data: DataSpec = None,
    split: Annotated[str, typer.Option(help="Split of the checkpoints' data.")] = "test",
    resamples: Annotated[int, typer.Option(help="Of permutations and of the bootstrap.", min=99)] = 9999,
    level: Annotated[float, typer.Option(help="Of the confidence intervals.")] = 0.95,
    seed: Annotated[int, typer.Option(help="Seed of permutations and of the bootstrap.", min=0)] = 0,
    device: Device = "auto",
    format: Format = "table",
    out: Annotated[Path | None, typer.Option(help="File for the result instead of stdout.")] = None,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Do not keep embeddings.")] = False,
    vocabulary: VocabularyFile = None,
    caption_image: CaptionImage = None,
    encoder_option: EncoderOptions = None,
    trust_code: TrustCode = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Differences between systems, with tests paired over images and over seeds, corrected by Holm.

    **Examples**

    `lossscope compare runs/triplet-seed* runs/triplet-sh-seed*`

    `lossscope compare runs/* --metric rsum --metric t2i_R@1 --baseline triplet --format latex --out table.tex`

    `lossscope compare saf.npz sgr.npz --metric all --all-pairs --format csv`

    Without --baseline every system is compared with the one that has the best mean. A system is named after its
    objective and whatever else differs between the recipes; a source that does not say how it was trained, after its
    file. What is tested, and what three seeds can show: docs/compare.md.
    """
    from lossscope.stats.compare import Resampling
    from lossscope.stats.compare import compare as compared
    from lossscope.tables import comparison

    chosen(format, _output.FORMATS, "--format")
    if baseline is not None and all_pairs:
        raise usage("--baseline and --all-pairs exclude each other; give one of them")
    metrics = METRICS if "all" in (metric or ()) else tuple(metric or ("rsum",))
    for name in metrics:
        chosen(name, (*METRICS, "all"), "--metric")
    chance = Resampling(resamples, seed, level)
    asked: dict[str, Any] = {
        "data": data, "split": split, "cache": not no_cache, "trust_code": trust_code, "vocabulary": vocabulary,
        "caption_image": caption_image, "encoder": tuple(encoder_option or ()),
    }  # fmt: skip
    with _output.progress(quiet) as bar:
        queries = _queries(runs, bar, quiet, device, asked)
    rows = compared(queries, metrics, _system(baseline, queries), all_pairs, chance)
    for told in dict.fromkeys(f"{row['left_out']}" for _, row in rows.iterrows() if row["left_out"]):
        _output.notice(f"Note: left out, because the other system has no such seed: {told}.", quiet)
    arguments = {
        "name": "compare", "runs": [str(run) for run in runs], "metrics": list(metrics), "baseline": baseline,
        "all_pairs": all_pairs, "split": split, "resamples": resamples, "level": level, "seed": seed,
    }  # fmt: skip
    _output.results(rows, lambda: [comparison.build(rows)], arguments, format, out, SCHEMA)


def _queries(
    runs: Iterable[Path], bar: _output.Progress | None, quiet: bool, device: str, asked: dict[str, Any]
) -> pd.DataFrame:
    """Every query of every run, beside who the run is. One model at a time is kept."""
    import pandas as pd

    from lossscope.retrieval.per_query import per_query
    from lossscope.stats.naming import TrainedModel, name_systems
    from lossscope.training.recipe_files import printed_choices

    models: list[TrainedModel] = []
    found: list[pd.DataFrame] = []
    for run in runs:
        embedded = _sources.embedded(run, bar, quiet, device, **asked)
        models.append(TrainedModel(embedded.name, embedded.seed, printed_choices(embedded.recipe)))
        found.append(per_query(embedded, bar))
    told = name_systems(models, asked["data"])
    return pd.concat([rows.assign(**who) for rows, who in zip(found, told, strict=True)], ignore_index=True)


def _system(baseline: str | None, queries: pd.DataFrame) -> str | None:
    """The system that is meant: by its name, with - or _, or by one of its runs."""
    if baseline is None:
        return None
    for run, trained in queries[["run", "objective_label"]].drop_duplicates().itertuples(index=False):
        if baseline.rstrip("/") == run or baseline.replace("-", "_") == trained.replace("-", "_"):
            return str(trained)
    return baseline
